// The word that marks unwritten memory: stored at allocation and at the
// beginning of system calls, searched for in data copied to user programs.
//
// No locks: an object belongs to its owner, a stack to its thread. `word` is
// set once, before other CPUs run tasks; until then it is 0 and nothing is
// checked.
// checked.
#ifdef KASAN

#include "kernel/debug/uninit.h"

#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"

#define MIX 0x9e3779b9u // 2^32 divided by the golden ratio
// The part of the stack that is filled: as deep as system calls use it.
#define FILLED KIB(4)
// Not filled, below the stack pointer: the frame of the filling function.
#define NEAR 64u

static u32 word;

void uninit_start(void)
{
    u64 now = rdtsc();
    // Each byte has its first and last bits set: no small number and no text.
    word = ((u32)now ^ (u32)(now >> 32)) * MIX | 0x81818181u;
}

void uninit_fill(void *p, size_t size)
{
    u32 *at = p;
    assert(!(size & 3));
    for (size_t i = 0; i < size / sizeof(u32); i++)
        at[i] = word;
}

void uninit_fill_stack(void)
{
    assert(!irqs_enabled()); // interrupt handlers use this part of the stack
    u32 bottom = (u32)current->kstack, end = frame_pointer() - NEAR;
    u32 at = MAX(bottom, end - FILLED);
    u32 words = (end - at) / sizeof(u32);
    memory_fill_words((void *)at, word, words);
}

static bool on_stack(u32 va)
{
    return va - (u32)current->kstack < KSTACK_SIZE;
}

static const struct frame *heap_frame(const void *p)
{
    if ((u32)p - KERNEL_BASE >= DIRECT_MAP_MAX || is_in_image((u32)p))
        return NULL;
    const struct frame *f = frame_from_va(p);
    return f && f->use == FRAME_SLAB ? f : NULL;
}

static NOINLINE NORETURN void report(const void *src, size_t offset,
                                     size_t size)
{
    const struct frame *f = on_stack((u32)src) ? NULL : heap_frame(src);
    const struct slab_cache *c = f ? f->owner : NULL;
    panic("uninit: bytes %u to %u of %u for a user program were never written "
          "(%s)",
          (u32)offset, (u32)(offset + sizeof(u32)), (u32)size,
          !f  ? "stack"
          : c ? c->name
              : "kmalloc");
}

void uninit_check(const void *src, size_t size)
{
    if (!word || (!on_stack((u32)src) && !heap_frame(src)))
        return;
    u32 first = ALIGN_UP((u32)src, (u32)sizeof(u32)), end = (u32)src + size;
    for (u32 at = first; at + sizeof(u32) <= end; at += sizeof(u32)) {
        if (*(const volatile u32 *)at == word)
            report(src, at - (u32)src, size);
    }
}

#endif
