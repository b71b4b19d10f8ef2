// arch/i386/boot/boot_parse.c: an input is a byte that selects the Multiboot
// version, then the low memory from address 8 on, which contains the loader's
// structure. Memory ends with the input.
// link: arch/i386/boot/memory_map.c arch/i386/boot/boot_fill.c
// link: arch/i386/boot/mb2_parse.c
#include "host.h"

#include <string.h>

#include "arch/i386/boot/multiboot.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/mm/memory.h"

#define INFO_AT 8u

static u8 *memory;
static u32 memory_bytes;
#undef DIRECT_MAP_MAX
#define DIRECT_MAP_MAX memory_bytes
#define phys_to_virt(paddr) ((void *)(memory + (paddr)))

#include "arch/i386/boot/boot_parse.c"

void text_init(void)
{
}

void cpu_init_boot(void)
{
}

void memory_init_boot(void)
{
}

void kaslr_move(void)
{
}

void kaslr_end(void)
{
}

void *early_map(u64 paddr, u64 size, u32 bits UNUSED)
{
    return paddr < memory_bytes && size <= memory_bytes - paddr ? memory + paddr
                                                                : NULL;
}

NORETURN void kernel_main(void)
{
    abort();
}

static void check_regions(void)
{
    paddr_t end = 0;
    REQUIRE(boot_info.region_count <= BOOT_REGIONS_MAX);
    for (u32 i = 0; i < boot_info.region_count; i++) {
        const struct boot_region *r = &boot_info.regions[i];
        REQUIRE(r->size && r->base >= end && r->base + r->size > r->base);
        REQUIRE(r->base % PAGE_SIZE == 0 && r->size % PAGE_SIZE == 0);
        REQUIRE(!r->usable || r->base >= REAL_MODE_END);
        end = r->base + r->size;
    }
}

static void check_start_page(void)
{
    u64 page = boot_info.start_page;
    REQUIRE(page % PAGE_SIZE == 0 && page < ROM_START);
    for (u32 i = 0; page && i < boot_info.module_count; i++) {
        const struct boot_module *m = &boot_info.modules[i];
        REQUIRE(m->base >= page + PAGE_SIZE || m->base + m->size <= page);
    }
    for (u32 i = 0; page >= REAL_MODE_END && i < boot_info.region_count; i++) {
        const struct boot_region *r = &boot_info.regions[i];
        REQUIRE(r->usable || r->base >= page + PAGE_SIZE ||
                r->base + r->size <= page);
    }
}

static void check_texts(void)
{
    REQUIRE(strlen(boot_info.loader) < sizeof(boot_info.loader));
    REQUIRE(strlen(boot_info.cmdline) < sizeof(boot_info.cmdline));
    REQUIRE(boot_info.module_count <= BOOT_MODULES_MAX);
    for (u32 i = 0; i < boot_info.module_count; i++) {
        const struct boot_module *m = &boot_info.modules[i];
        REQUIRE(strlen(m->name) < sizeof(m->name) && !strchr(m->name, '/') &&
                !strchr(m->name, ' '));
    }
}

static void check_framebuffer(void)
{
    const struct boot_framebuffer *f = &boot_info.framebuffer;
    u32 bytes = DIV_ROUND_UP(f->bits, 8u);
    if (!f->width)
        return;
    REQUIRE(f->base && f->height && bytes >= 2 && bytes <= 4);
    REQUIRE(f->pitch >= f->width * bytes);
    REQUIRE(f->base + (u64)f->pitch * f->height > f->base);
    const struct boot_colour colours[] = { f->red, f->green, f->blue };
    for (u32 i = 0; i < ARRAY_SIZE(colours); i++)
        REQUIRE(colours[i].bits && colours[i].bits <= 8 &&
                colours[i].shift + colours[i].bits <= 8 * bytes);
}

static void check_problems(void)
{
    for (u32 i = 0; i < MIN(boot_info.problem_count, BOOT_PROBLEMS_MAX); i++)
        REQUIRE(boot_info.problems[i][0] &&
                strlen(boot_info.problems[i]) <
                    sizeof(boot_info.problems[i]) - 1);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct input in = { data, size };
    u32 magic = take_byte(&in) & 1 ? MB2_BOOT_MAGIC : MB1_BOOT_MAGIC;
    memory_bytes = INFO_AT + (u32)in.left;
    memory = calloc(1, memory_bytes);
    REQUIRE(memory);
    memcpy(memory + INFO_AT, in.at, in.left);
    boot_parse(magic, INFO_AT);
    check_regions();
    check_texts();
    check_start_page();
    check_framebuffer();
    check_problems();
    free(memory);
    return 0;
}
