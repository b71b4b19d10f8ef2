// Copies the boot loader's information into boot_info: where it lies, and
// Multiboot 1 (mb2_parse.c: Multiboot 2).
//
// This code cannot log or panic: there is no console yet. A structure that
// exceeds its bounds is skipped, a text that is too long is truncated.

#include "arch/boot.h"
#include "arch/i386/boot/boot_fill.h"
#include "arch/i386/boot/early_map.h"
#include "arch/i386/boot/kaslr.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/mm/memory.h"
#include "arch/i386/text/text_init.h"
#include "lib/string.h"

// Most bytes of a text that are read.
#define LOADER_TEXT_MAX KIB(64)

// Most bytes of Multiboot 2's information: a firmware's memory map and network
// packets are the largest tags.
#define MB2_INFO_MAX MIB(1)

// A loader's structure, or NULL if it is beyond the early page tables.
static const void *at(u32 paddr, size_t size)
{
    if (!paddr || paddr >= DIRECT_MAP_MAX || size > DIRECT_MAP_MAX - paddr)
        return NULL;
    return early_map(paddr, size, 0);
}

// Number of bytes of a loader's text that may be read: memory after them is not
// mapped.
static size_t text_room(u32 paddr)
{
    size_t room = paddr < DIRECT_MAP_MAX ? DIRECT_MAP_MAX - paddr : 0;
    return MIN(room, LOADER_TEXT_MAX);
}

static const char *text_at(u32 paddr)
{
    return at(paddr, text_room(paddr));
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
        boot_add_memory(e->base, e->length, e->type);
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
            boot_add_module(m->start, m->end, text_at(m->string),
                            text_room(m->string));
    }
}

// QEMU prepends the kernel's file name, GRUB does not.
static void mb1_parse_cmdline(u32 paddr)
{
    const char *line = text_at(paddr);
    size_t left = line ? strnlen(line, text_room(paddr)) : 0;
    bool name = !strncmp(boot_info.loader, "qemu", 4);
    for (; name && left; left--)
        name = *line++ != ' ';
    boot_copy_text(boot_info.cmdline, BOOT_CMDLINE_MAX, line, left);
}

static void mb1_parse(const struct mb1_info *info)
{
    if (info->flags & MB1_HAS_LOADER)
        boot_copy_text(boot_info.loader, sizeof(boot_info.loader),
                       text_at(info->loader_name),
                       text_room(info->loader_name));
    if (info->flags & MB1_HAS_CMDLINE)
        mb1_parse_cmdline(info->cmdline);
    mb1_parse_modules(info);
    if (!mb1_parse_map(info) && info->flags & MB1_HAS_MEMORY)
        boot_add_plain_memory(info->mem_lower, info->mem_upper);
}

// --- from boot.S

// The loader may place its information anywhere below 4 GiB.
static void parse_mb2(u32 paddr)
{
    const struct mb2_info *info = early_map(paddr, sizeof(*info), 0);
    u32 size = info ? info->total_size : 0;
    if (size < sizeof(*info) || size > MB2_INFO_MAX ||
        !(info = early_map(paddr, size, 0))) {
        boot_problem("its information at %#x has %#x bytes: not read", paddr,
                     size);
        return;
    }
    mb2_parse(info, size);
}

static void boot_parse(u32 magic, u32 info)
{
    boot_fill_begin();
    if (magic == MB1_BOOT_MAGIC) {
        const struct mb1_info *mb1 = at(info, sizeof(*mb1));
        if (mb1)
            mb1_parse(mb1);
        else
            boot_problem("its information at %#x is out of reach", info);
    } else {
        parse_mb2(info);
    }
    boot_fill_finish();
}

// At the image's linked addresses.
void boot_main(u32 magic, u32 info);
void boot_main(u32 magic, u32 info)
{
#ifdef KASAN
    kasan_map_early();
#endif
    text_init();
    memory_init_boot();
    boot_parse(magic, info);
    kaslr_move();
}

// At its own.
NORETURN void boot_moved(void);
void boot_moved(void)
{
    kaslr_end();
    cpu_init_boot();
    memory_init_boot();
    kernel_main();
}
