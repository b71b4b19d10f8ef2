// Address space layout randomisation of the kernel (KASLR): at start-up the
// image's addresses are moved up by a random number of large pages.
//
// The image is linked for fixed addresses, and no instruction is added: the
// build lists the words that hold one of them (tools/build/relocations), and
// each is increased here. The image stays where it lies in the memory;
// meanwhile it is mapped at both addresses, so this code may run on while it
// changes.
//
// Places are preferred whose addresses hide no memory (arch/mmu.h). Checked
// kernels with KASAN have no shadow for others, and stay.

#include "arch/i386/boot/kaslr.h"
#include "arch/boot.h"
#include "arch/entropy.h"
#include "arch/i386/boot/early_map.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/mm/entry.h"
#include "arch/i386/mm/memory.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/log.h"
#include "kernel/debug/kasan.h"
#include "lib/string.h"

#define PLACES_ENOUGH 64u // 6 bits
#define ARGUMENT "kaslr="
#define GOLDEN_RATIO 0x9e3779b1u // of 2^32: Knuth, vol. 3, 6.4

// Absent in the first link pass.
extern const u32 relocation_count __attribute__((weak));
extern const u8 relocation_table[] __attribute__((weak));

static u32 places; // of which one was drawn; 0: none was
static const char *source = "RDRAND";

KERNEL_ARG(kaslr, "kaslr=off|N   do not move the kernel, or move it by N large "
                  "pages (at random)");

// The last one counts, as in cmdline_parse, which cannot run yet.
static const char *find_argument(void)
{
    const char *found = NULL, *line = boot_info.cmdline;
    for (const char *at = line; (at = strstr(at, ARGUMENT)); at++) {
        if (at == line || at[-1] == ' ')
            found = at + strlen(ARGUMENT);
    }
    return found;
}

// Of the TSC the low bits differ most between starts, but the high ones count.
static u32 draw(u32 first, u32 most)
{
    u32 random;
    places = most - first + 1;
    if (!cpu_random_u32(&random)) {
        u64 tsc = rdtsc();
        random = ((u32)tsc ^ (u32)(tsc >> 32)) * GOLDEN_RATIO;
        source = "TSC";
    }
    return first + (u32)((u64)random * places >> 32);
}

static u32 choose_distance(void)
{
    u32 span = table_span();
    u32 own = DIV_ROUND_UP((u32)kernel_end - KERNEL_LOAD, span), n = 0;
    u32 most = (DIRECT_MAP_MAX - IMAGE_PADDR) / span - own;
    u32 end = MAX(direct_memory_end(), IMAGE_PADDR);
    u32 first = DIV_ROUND_UP(end - IMAGE_PADDR, span);
    const char *value = find_argument();
#ifdef CHECKED
    value = value ? value : "off"; // so that all in a report is kernel.elf's
#endif
    if (value && !strncmp(value, "off", 3))
        return 0;
    if (value && *value >= '0' && *value <= '9') {
        while (*value >= '0' && *value <= '9' && n < most)
            n = n * 10 + (u32)(*value++ - '0');
        n = MIN(n, most);
    } else {
        n = draw(first + PLACES_ENOUGH <= most + 1 ? first : own, most);
    }
    return MAX(n, n ? own : 0) * span;
}

struct word {
    u32 value;
} PACKED;

// It uses no address of the image itself: the image's words change under it.
static NOINLINE void relocate(const u8 *code, u32 words, char *at, u32 distance)
{
    for (; words; words--) {
        u32 step = 0, shift = 0;
        for (; *code & 0x80; shift += 7)
            step |= (*code++ & 0x7fu) << shift;
        at += step | (u32)*code++ << shift;
        ((struct word *)at)->value += distance;
    }
}

void kaslr_move(void)
{
    u32 distance = !KASAN_ON && &relocation_count ? choose_distance() : 0;
    if (!distance)
        return;
    early_map_image((u32)image_start() + distance,
                    image_paddr((void *)image_start()));
    boot_info.ranges = (void *)((u32)boot_info.ranges + distance);
    relocate(relocation_table, relocation_count, text_start, distance);
    image_distance -= distance;
}

void kaslr_end(void)
{
    if (image_slide())
        early_map_image(KERNEL_LOAD, IMAGE_PADDR);
}

void kaslr_report(void)
{
    if (places)
        log_printf("kaslr: the kernel has one of %u places, by %s\n", places,
                   source);
    else
        log_printf("kaslr: %s\n", image_slide() ? "by argument" : "off");
}
