// Filling in boot_info; see boot_fill.h.

#include "arch/i386/boot/boot_fill.h"
#include "arch/i386/boot/memory_map.h"
#include "lib/format.h"
#include "lib/string.h"

struct boot_info boot_info;

static struct memory_map memory_map;

void boot_fill_begin(void)
{
    memset(&boot_info, 0, sizeof(boot_info));
    memset(&memory_map, 0, sizeof(memory_map));
}

void boot_problem(const char *fmt, ...)
{
    u32 i = boot_info.problem_count++;
    if (i >= BOOT_PROBLEMS_MAX)
        return;
    va_list args;
    va_start(args, fmt);
    format_va(boot_info.problems[i], sizeof(boot_info.problems[i]), fmt, args);
    va_end(args);
}

void boot_copy_text(char *dst, size_t size, const char *text, size_t max)
{
    size_t n = text ? strnlen(text, MIN(max, size - 1)) : 0;
    if (n)
        memcpy(dst, text, n);
    dst[n] = 0;
}

void boot_add_module(u32 start, u32 end, const char *text, size_t max)
{
    if (boot_info.module_count == BOOT_MODULES_MAX || end < start) {
        boot_problem("module %#x to %#x: %s", start, end,
                     end < start ? "no range of memory: skipped"
                                 : "too many modules: skipped");
        return;
    }
    struct boot_module *m = &boot_info.modules[boot_info.module_count++];
    m->base = start;
    m->size = end - start;
    if (!text)
        return;
    size_t length = strnlen(text, max), word = 0, name = 0;
    for (; word < length && text[word] != ' '; word++) {
        if (text[word] == '/')
            name = word + 1;
    }
    boot_copy_text(m->name, sizeof(m->name), text + name, word - name);
}

void boot_add_memory(u64 base, u64 size, u32 type)
{
    memory_map_add(&memory_map, base, size, type);
}

void boot_add_plain_memory(u32 lower, u32 upper)
{
    if (memory_map.range_count)
        return;
    boot_add_memory(0, (u64)lower * 1024, BOOT_RANGE_USABLE);
    boot_add_memory(MIB(1), (u64)upper * 1024, BOOT_RANGE_USABLE);
}

static bool is_free(u32 page)
{
    bool usable = false;
    for (u32 i = 0; i < boot_info.region_count; i++) {
        const struct boot_region *r = &boot_info.regions[i];
        usable |= r->usable && r->base <= page &&
                  page + PAGE_SIZE <= r->base + r->size;
    }
    for (u32 i = 0; i < boot_info.module_count; i++) {
        const struct boot_module *m = &boot_info.modules[i];
        usable &= page + PAGE_SIZE <= m->base || m->base + m->size <= page;
    }
    return usable;
}

// A STARTUP interrupt carries the page's number (SDM vol. 3, 9.4.4).
static u32 choose_start_page(void)
{
    if (is_free(START_PAGE))
        return START_PAGE;
    for (u32 page = PAGE_SIZE; page < ROM_START; page += PAGE_SIZE) {
        if (is_free(page))
            return page;
    }
    return 0;
}

static void make_regions(void)
{
    boot_info.ranges = memory_map.ranges;
    boot_info.range_count = memory_map.range_count;
    boot_info.region_count =
        memory_map_finish(&memory_map, boot_info.regions, BOOT_REGIONS_MAX);
}

void boot_fill_finish(void)
{
    boot_add_memory(ROM_START, ROM_END - ROM_START, BOOT_RANGE_KEPT);
    make_regions();
    boot_info.start_page = choose_start_page();
    boot_add_memory(0, REAL_MODE_END, BOOT_RANGE_KEPT);
    make_regions();
    boot_info.memory_dropped =
        memory_map.dropped_ranges + memory_map.dropped_regions;
    if (boot_info.memory_dropped)
        boot_problem("its memory map has too many ranges: %u KiB are not used",
                     (u32)(boot_info.memory_dropped >> 10));
}
