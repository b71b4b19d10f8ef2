// Copies the boot loader's information into boot_info, from Multiboot 1 or 2.
//
// This code cannot log or panic: there is no console yet. A structure that
// exceeds its bounds is skipped, a text that is too long is truncated.

#include "arch/boot.h"
#include "arch/i386/boot/memory_map.h"
#include "arch/i386/boot/multiboot.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/mm/memory.h"
#include "arch/i386/text/text_init.h"
#include "lib/string.h"

struct boot_info boot_info;

static struct memory_map memory_map;

// Real mode's vectors, the BIOS's data, and the page in which the APs start.
#define REAL_MODE_END 0x9000u

// Most bytes of a text that are read.
#define LOADER_TEXT_MAX KIB(64)

#define RSDP_SIZE_OLD 20u
#define RSDP_SIZE_NEW 36u

// A loader's structure, or NULL if it is beyond the early page tables.
static const void *at(u32 paddr, size_t size)
{
    if (!paddr || paddr >= DIRECT_MAP_MAX || size > DIRECT_MAP_MAX - paddr)
        return NULL;
    return phys_to_virt(paddr);
}

// Number of bytes of a loader's text that may be read: memory after them is not
// mapped.
static size_t text_room(u32 paddr)
{
    size_t room = at(paddr, 1) ? DIRECT_MAP_MAX - paddr : 0;
    return MIN(room, LOADER_TEXT_MAX);
}

static void copy_text(char *dst, size_t size, const char *text, size_t max)
{
    size_t n = text ? strnlen(text, MIN(max, size - 1)) : 0;
    if (n)
        memcpy(dst, text, n);
    dst[n] = 0;
}

// The module's name is the last path component of the first word of its text.
static void add_module(u32 start, u32 end, const char *text, size_t max)
{
    if (boot_info.module_count == BOOT_MODULES_MAX || end < start)
        return;
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
    copy_text(m->name, sizeof(m->name), text + name, word - name);
}

// For loaders that report sizes only (KiB below 1 MiB, and above it).
static void add_plain_memory(u32 lower, u32 upper)
{
    memory_map_add(&memory_map, 0, (u64)lower * 1024, true);
    memory_map_add(&memory_map, MIB(1), (u64)upper * 1024, true);
}

// --- Multiboot 1

// An entry shorter than its fields, or longer than the rest, ends the map.
static bool mb1_parse_map(const struct mb1_info *info)
{
    const char *p = info->flags & MB1_HAS_MMAP
                        ? at(info->mmap_addr, info->mmap_length)
                        : NULL;
    if (!p)
        return false;
    u32 left = info->mmap_length;
    while (left >= sizeof(struct mb1_mmap_entry)) {
        const struct mb1_mmap_entry *e = (const void *)p;
        if (e->size < sizeof(*e) - sizeof(e->size))
            break;
        memory_map_add(&memory_map, e->base, e->length,
                       e->type == MB_MEMORY_AVAILABLE);
        // (The sum of size and the size field may exceed 32 bits.)
        if (e->size > left - sizeof(e->size))
            break;
        p += e->size + sizeof(e->size);
        left -= e->size + sizeof(e->size);
    }
    return true;
}

static void mb1_parse_modules(const struct mb1_info *info)
{
    size_t size = sizeof(struct mb1_module);
    if (!(info->flags & MB1_HAS_MODULES))
        return;
    for (u32 i = 0; i < info->mods_count && i < BOOT_MODULES_MAX; i++) {
        const struct mb1_module *m = at(info->mods_addr + i * size, size);
        if (m)
            add_module(m->start, m->end, at(m->string, 1),
                       text_room(m->string));
    }
}

// QEMU prepends the kernel's file name, GRUB does not.
static void mb1_parse_cmdline(u32 paddr)
{
    const char *line = at(paddr, 1);
    size_t left = line ? strnlen(line, text_room(paddr)) : 0;
    bool name = !strncmp(boot_info.loader, "qemu", 4);
    for (; name && left; left--)
        name = *line++ != ' ';
    copy_text(boot_info.cmdline, BOOT_CMDLINE_MAX, line, left);
}

static void mb1_parse(const struct mb1_info *info)
{
    if (info->flags & MB1_HAS_LOADER)
        copy_text(boot_info.loader, sizeof(boot_info.loader),
                  at(info->loader_name, 1), text_room(info->loader_name));
    if (info->flags & MB1_HAS_CMDLINE)
        mb1_parse_cmdline(info->cmdline);
    mb1_parse_modules(info);
    if (!mb1_parse_map(info) && info->flags & MB1_HAS_MEMORY)
        add_plain_memory(info->mem_lower, info->mem_upper);
}

// --- Multiboot 2

static void mb2_parse_map(const struct mb2_mmap *map)
{
    if (map->entry_size < sizeof(struct mb2_mmap_entry))
        return;
    u32 left = map->tag.size - sizeof(*map);
    const u8 *p = map->entries;
    for (; left >= map->entry_size; left -= map->entry_size) {
        const struct mb2_mmap_entry *e = (const void *)p;
        memory_map_add(&memory_map, e->base, e->length,
                       e->type == MB_MEMORY_AVAILABLE);
        p += map->entry_size;
    }
}

// The new form takes precedence, in either order.
static void mb2_parse_rsdp(const struct mb2_rsdp *r)
{
    bool new = r->tag.type == MB2_TAG_RSDP_NEW;
    u32 size = r->tag.size - sizeof(*r);
    u32 least = new ? RSDP_SIZE_NEW : RSDP_SIZE_OLD;
    if (size < least || (boot_info.rsdp_copied && !new))
        return;
    memset(boot_info.rsdp_data, 0, sizeof(boot_info.rsdp_data));
    memcpy(boot_info.rsdp_data, r->rsdp, least);
    boot_info.rsdp_copied = true;
    boot_info.rsdp = virt_to_phys(boot_info.rsdp_data);
}

static void mb2_parse_tag(const struct mb2_tag *t)
{
    const struct mb2_string *s = (const void *)t;
    const struct mb2_module *m = (const void *)t;
    size_t text = t->size - sizeof(*t); // of a string tag

    switch (t->type) {
    case MB2_TAG_CMDLINE:
        copy_text(boot_info.cmdline, BOOT_CMDLINE_MAX, s->text, text);
        break;
    case MB2_TAG_LOADER:
        copy_text(boot_info.loader, sizeof(boot_info.loader), s->text, text);
        break;
    case MB2_TAG_MODULE:
        if (t->size >= sizeof(*m))
            add_module(m->start, m->end, m->text, t->size - sizeof(*m));
        break;
    case MB2_TAG_MMAP:
        if (t->size >= sizeof(struct mb2_mmap))
            mb2_parse_map((const void *)t);
        break;
    case MB2_TAG_RSDP_OLD:
    case MB2_TAG_RSDP_NEW:
        mb2_parse_rsdp((const void *)t);
        break;
    }
}

static void mb2_parse(const struct mb2_info *info)
{
    const char *p = (const char *)info + sizeof(*info);
    const char *end = (const char *)info + info->total_size;
    const struct mb2_memory *memory = NULL;
    while (p + sizeof(struct mb2_tag) <= end) {
        const struct mb2_tag *t = (const void *)p;
        if (t->type == MB2_TAG_END || t->size < sizeof(*t) ||
            t->size > (size_t)(end - p))
            break;
        if (t->type == MB2_TAG_MEMORY && t->size >= sizeof(*memory))
            memory = (const void *)t;
        mb2_parse_tag(t);
        p += ALIGN_UP(t->size, 8u);
    }
    if (!memory_map.range_count && memory)
        add_plain_memory(memory->lower, memory->upper);
}

// --- from boot.S

static void boot_parse(u32 magic, u32 info)
{
    if (magic == MB1_BOOT_MAGIC) {
        const struct mb1_info *mb1 = at(info, sizeof(*mb1));
        if (mb1)
            mb1_parse(mb1);
    } else {
        const struct mb2_info *mb2 = at(info, sizeof(*mb2));
        if (mb2 && at(info, mb2->total_size))
            mb2_parse(mb2);
    }
    memory_map_add(&memory_map, 0, REAL_MODE_END, false);
    boot_info.region_count =
        memory_map_finish(&memory_map, boot_info.regions, BOOT_REGIONS_MAX);
}

NORETURN void boot_main(u32 magic, u32 info);
void boot_main(u32 magic, u32 info)
{
#ifdef KASAN
    kasan_map_early();
#endif
    text_init();
    cpu_init_boot();
    memory_init_boot();
    boot_parse(magic, info);
    kernel_main();
}
