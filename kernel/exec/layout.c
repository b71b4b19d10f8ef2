#include "kernel/exec/layout.h"

#include "arch/mmu.h"
#include "kernel/base/cmdline.h"
#include "kernel/fs/devfs.h"

KERNEL_ARG(
    randomize_va_space,
    "randomize_va_space=0: programs and their stacks, heaps and mappings "
    "lie at fixed places; 1: heaps do");

#define LEVEL_MAX 2u
#define LEVEL_UNKNOWN ~0u

// In pages, as in Linux/i386 for stack and heap.
#define STACK_PAGES 2048u
#define MMAP_PAGES 2048u
#define BRK_PAGES 8192u
#define PROGRAM_PAGES 2048u

u32 layout_level(void)
{
    static u32 level = LEVEL_UNKNOWN; // concurrent writers store the same value
    u32 found = READ_ONCE(level), asked;
    if (found != LEVEL_UNKNOWN)
        return found;
    found = LEVEL_MAX;
    if (kernel_arg_number(&arg_randomize_va_space, &asked))
        found = MIN(asked, LEVEL_MAX);
    WRITE_ONCE(level, found);
    return found;
}

static u32 pages_at_random(u32 word, u32 pages)
{
    return word % pages * PAGE_SIZE;
}

void layout_choose(struct layout *out, bool fixed)
{
    u32 level = fixed ? 0 : layout_level(), words[4];
    *out = (struct layout){ 0 };
    if (!level)
        return;
    random_bytes(words, sizeof(words));
    out->stack = pages_at_random(words[0], STACK_PAGES);
    out->mmap = pages_at_random(words[1], MMAP_PAGES);
    out->program = pages_at_random(words[2], PROGRAM_PAGES);
    if (level > 1)
        out->brk = pages_at_random(words[3], BRK_PAGES);
}
