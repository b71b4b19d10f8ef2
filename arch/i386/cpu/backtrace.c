// Backtrace by frame pointers, in any context: reads mapped memory only.

#include "arch/cpu.h"
#include "arch/mmu.h"
#include "arch/thread.h"
#include "kernel/debug/kasan.h"

struct stack_frame {
    u32 caller; // the caller's frame pointer
    u32 return_to;
};

static NOTRACE bool readable(u32 at)
{
    struct mapping m;
    if (at < KERNEL_BASE || at & 3 || at > -(u32)sizeof(struct stack_frame))
        return false;
    u32 last = at + sizeof(struct stack_frame) - 1;
    return pagetable_lookup(&kernel_pagetable, at, &m) &&
           pagetable_lookup(&kernel_pagetable, last, &m);
}

// The frame pointer may point anywhere if a prologue was interrupted.
NOTRACE NO_KASAN u32 backtrace(u32 ebp, u32 *pcs, u32 max)
{
    u32 n = 0;
    while (n < max && readable(ebp)) {
        const struct stack_frame *f = (const struct stack_frame *)ebp;
        u32 caller = f->caller, back = f->return_to;
        if (call_trace_is_exit(back))
            back = call_trace_back((u32)&f->return_to);
        if (back < KERNEL_BASE)
            break;
        pcs[n++] = back;
        // Callers' frames lie above, on the same stack: this excludes cycles.
        if (caller <= ebp || caller - ebp > KSTACK_SIZE)
            break;
        ebp = caller;
    }
    return n;
}
