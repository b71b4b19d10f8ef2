// Page faults: demand paging for user programs and for the kernel's accesses to
// user memory. Any other fault in the kernel is a bug, and the panic message
// says of which kind.

#include "arch/i386/cpu/fault.h"

#include "arch/i386/cpu/arch_cpu.h"
#include "arch/mmu.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/signal.h"
#include "kernel/base/thread.h"
#include "kernel/mm/aspace.h"
#include "kernel/trace/point.h"

#define SEGV_MAPERR 1
#define SEGV_ACCERR 2
#define BUS_ADRERR 2

#define NULL_PAGES 16u // an address below is a NULL pointer plus an offset

static ALWAYS_INLINE int resolve(u32 addr, u32 error)
{
    struct aspace *as = current_base()->aspace;
    if (addr >= USER_END || !as)
        return -EFAULT;
    ADD_ONCE(current_base()->faults, 1);
    return aspace_fault(as, addr, error | FAULT_USER);
}

// In user mode the CPU accesses user memory as the user. QEMU 7.2 does not when
// a program returns by IRET or RETF: it accesses the program's stack as the
// kernel, SMAP refuses that, and the fault repeats for ever. Mapping a page
// would not help.
static ALWAYS_INLINE int resolve_for_user(u32 addr, u32 error)
{
    if (unlikely(!(error & FAULT_USER)))
        return -EACCES;
    return resolve(addr, error);
}

static NOINLINE void not_resolved(u32 addr, int err)
{
    TRACE(page_fault_end, .result = (u32)err);
    switch (err) {
    case -ENOMEM:
        memory_is_out(addr);
        break;
    case -EIO:
        signal_fault(SIGBUS, BUS_ADRERR, addr);
        break;
    case -EACCES:
        signal_fault(SIGSEGV, SEGV_ACCERR, addr);
        break;
    default:
        signal_fault(SIGSEGV, SEGV_MAPERR, addr);
    }
}

NOTRACE void fault_from_user(struct trapframe *tf)
{
    u32 addr = read_cr2();
    irq_enable();
    TRACE(page_fault, .address = addr, .error = tf->error);
    int err = resolve_for_user(addr, tf->error);
    if (likely(!err))
        TRACE(page_fault_end, .result = 0);
    else
        not_resolved(addr, err);
}

bool fault_is_stack_overflow(u32 esp)
{
    extern char boot_stack_guard[];
    const struct thread_base *t = current_base();
    // The first fault is often a push's: esp may still be at the stack's end.
    u32 end =
        t && t->kstack ? (u32)t->kstack : (u32)boot_stack_guard + PAGE_SIZE;
    return esp - (end - PAGE_SIZE) <= PAGE_SIZE;
}

static NORETURN void kernel_bug(struct trapframe *tf, u32 addr)
{
    u32 error = tf->error;
    const char *access = error & FAULT_EXEC    ? "execution"
                         : error & FAULT_WRITE ? "write"
                                               : "read";
    if (addr < NULL_PAGES * PAGE_SIZE)
        panic_trap(tf, "NULL dereference: %s at %08x", access, addr);
    if (addr < USER_END && error & FAULT_PRESENT)
        panic_trap(tf, "%s of user memory at %08x, outside user copies (%s)",
                   access, addr, error & FAULT_EXEC ? "SMEP" : "SMAP");
    if (fault_is_stack_overflow(addr))
        panic_trap(tf, "kernel stack overflow at %08x", addr);
    panic_trap(tf, "page fault in the kernel: %s at %08x (%s)", access, addr,
               error & FAULT_PRESENT ? "protected" : "not mapped");
}

// With a spinlock held or in an interrupt handler a fault cannot wait for a
// page.
static bool may_sleep(const struct trapframe *tf)
{
    struct cpu *c = this_cpu();
    return tf->eflags & EFLAGS_IF && !c->preempt_count && !c->irq_depth &&
           c->thread;
}

void fault_from_kernel(struct trapframe *tf)
{
    u32 addr = read_cr2();
    u32 fixup = tf->eip;
    // Only user copies may access user memory. A fault without an entry in the
    // exception table is a wild pointer, even where something is mapped.
    if (unlikely(!fault_fixup(&fixup) || addr >= USER_END))
        kernel_bug(tf, addr);
    int err = -EFAULT;
    TRACE(page_fault, .address = addr, .error = tf->error);
    if (may_sleep(tf)) {
        irq_enable();
        err = resolve(addr, tf->error);
        if (err == -ENOMEM && memory_is_out(addr))
            err = 0; // the access is retried
        irq_disable();
    }
    TRACE(page_fault_end, .result = (u32)err);
    if (unlikely(err))
        tf->eip = fixup;
}
