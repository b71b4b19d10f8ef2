// Exceptions, interrupts and system calls, behind entry.S.
//
// All of them arrive with interrupts off. The ledger is told first, and last,
// so that no cycle is booked to the wrong side. Every return to user mode goes
// through return_to_user: signals and due switches are seen to with interrupts
// on, and looked for once more with interrupts off.

#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/fault.h"
#include "arch/irq.h"
#include "arch/mmu.h"
#include "kernel/init/log.h"
#include "kernel/sched/task.h"
#include "kernel/syscall/dispatch.h"

// si_code values (Linux, asm-generic/siginfo.h)
#define FPE_INTDIV 1
#define ILL_ILLOPN 2
#define TRAP_TRACE 2
#define BUS_ADRALN 1

enum {
    DIVIDE_ERROR = 0,
    DEBUG = 1,
    BREAKPOINT = 3,
    OVERFLOW = 4,
    BOUND_RANGE = 5,
    INVALID_OPCODE = 6,
    NO_FPU = 7,
    INVALID_TSS = 10,
    NO_SEGMENT = 11,
    STACK_FAULT = 12,
    PROTECTION = 13,
    FPU_ERROR = 16,
    ALIGNMENT = 17,
    SIMD_ERROR = 19,
    EXCEPTIONS = 32,
};

const char *exception_name(u32 vector)
{
    static const char *const names[] = {
        "divide error",
        "debug exception",
        "NMI",
        "breakpoint",
        "overflow",
        "bound range exceeded",
        "invalid opcode",
        "no FPU",
        "double fault",
        "coprocessor segment overrun",
        "invalid TSS",
        "segment not present",
        "stack fault",
        "general protection fault",
        "page fault",
        "reserved exception",
        "FPU error",
        "alignment check",
        "machine check",
        "SIMD error",
        "virtualization exception",
        "control protection exception",
    };
    return vector < ARRAY_SIZE(names) ? names[vector] : "reserved exception";
}

// Signals and switches, until none is due; interrupts are off then.
static ALWAYS_INLINE void finish_user_work(struct trapframe *tf)
{
    irq_disable();
    while (unlikely(READ_ONCE(current->signal_pending) ||
                    this_cpu_read(need_resched))) {
        irq_enable();
        if (this_cpu_read(need_resched))
            schedule();
        if (READ_ONCE(current->signal_pending))
            signal_deliver(tf);
        irq_disable();
    }
}

static ALWAYS_INLINE void return_to_user(struct trapframe *tf)
{
    finish_user_work(tf);
    ledger_kernel_to_user(&current->user);
}

void trap_leave(struct trapframe *tf)
{
    return_to_user(tf);
}

// Entered from entry.S, by `int $0x80`.
void trap_syscall(struct trapframe *tf)
{
    u64 before = current->kernel.cycles;
    ledger_user_to_kernel(&current->kernel);
    irq_enable();
    u32 index = syscall_dispatch(tf);
    finish_user_work(tf);
    syscall_count(index, (s32)tf->eax, before);
    ledger_kernel_to_user(&current->user);
}

// An NMI cannot tell by itself: the log takes a lock.
static NOINLINE void log_nmis(struct arch_cpu *a)
{
    u32 nmis = READ_ONCE(a->nmis);
    log_printf("cpu%u: %u unexpected NMI%s\n", this_cpu()->id,
               nmis - a->nmis_logged, nmis - a->nmis_logged == 1 ? "" : "s");
    a->nmis_logged = nmis;
}

// Entered from entry.S: vectors 0x20 and above.
void trap_interrupt(struct trapframe *tf)
{
    struct cpu *c = this_cpu();
    bool from_user = trap_from_user(tf);
    struct account *interrupted = ledger_irq_enter(tf->vector, from_user);
    struct trapframe *outer = c->irq_frame;
    c->irq_frame = tf;
    c->irq_depth++;
    irq_dispatch(tf);
    if (unlikely(c->arch->nmis != c->arch->nmis_logged))
        log_nmis(c->arch);
    c->irq_depth--;
    c->irq_frame = outer;
    ledger_irq_leave(interrupted, from_user, &current->kernel);
    if (from_user)
        return_to_user(tf);
    else
        sched_interrupt_exit();
}

// Entered from entry.S. It may have hit any instruction at all: no locks, and
// only this CPU's own data.
void trap_nmi(struct trapframe *tf UNUSED)
{
    struct arch_cpu *a = this_cpu()->arch;
    if (smp_stopping()) {
        WRITE_ONCE(a->stopped, true);
        cpu_halt_forever();
    }
    a->nmis++;
}

static void use_fpu(void)
{
    if (fpu_first_use())
        return;
    irq_enable();
    fault_out_of_memory();
}

// An exception in a user program; interrupts are off, and on when it returns.
static void user_exception(struct trapframe *tf)
{
    u32 at = tf->eip;
    int code;
    switch (tf->vector) {
    case VECTOR_PAGE_FAULT:
        fault_from_user(tf);
        return;
    case NO_FPU:
        use_fpu();
        return;
    case FPU_ERROR:
    case SIMD_ERROR:
        code = fpu_error_code(tf->vector);
        irq_enable();
        signal_fault(SIGFPE, code, at);
        return;
    }
    irq_enable();
    switch (tf->vector) {
    case DIVIDE_ERROR:
        signal_fault(SIGFPE, FPE_INTDIV, at);
        break;
    case DEBUG:
        signal_fault(SIGTRAP, TRAP_TRACE, at);
        break;
    case BREAKPOINT:
        signal_fault(SIGTRAP, SI_KERNEL, 0);
        break;
    case INVALID_OPCODE:
        signal_fault(SIGILL, ILL_ILLOPN, at);
        break;
    case NO_SEGMENT:
    case STACK_FAULT:
        signal_fault(SIGBUS, SI_KERNEL, 0);
        break;
    case ALIGNMENT:
        signal_fault(SIGBUS, BUS_ADRALN, 0);
        break;
    case OVERFLOW:
    case BOUND_RANGE:
    case INVALID_TSS:
    case PROTECTION:
        signal_fault(SIGSEGV, SI_KERNEL, 0);
        break;
    default: // machine check and what no CPU of ours raises
        panic_trap(tf, "%s in a user program", exception_name(tf->vector));
    }
}

// An exception in the kernel: right only where the exception table says so.
static void kernel_exception(struct trapframe *tf)
{
    if (tf->vector == VECTOR_PAGE_FAULT) {
        fault_from_kernel(tf);
        return;
    }
    if (fault_fixup(&tf->eip))
        return;
    panic_trap(tf, "%s (error %#x)", exception_name(tf->vector), tf->error);
}

// Entered from entry.S: vectors 0 to 31, but NMI and double fault.
void trap_exception(struct trapframe *tf)
{
    irq_count_exception(tf->vector);
    if (!trap_from_user(tf)) {
        kernel_exception(tf);
        return;
    }
    ledger_user_to_kernel(&current->kernel);
    user_exception(tf);
    return_to_user(tf);
}

// Entered from entry.S as the task that the double fault gate names, on a stack
// of its own: what the CPU was doing is in its TSS.
NORETURN void double_fault(void)
{
    const struct tss *t = &this_cpu()->arch->tss;
    struct trapframe tf = {
        t->ebx,
        t->ecx,
        t->edx,
        t->esi,
        t->edi,
        t->ebp,
        t->eax,
        t->ds,
        t->es,
        t->fs,
        VECTOR_DOUBLE_FAULT,
        0,
        t->eip,
        t->cs,
        t->eflags,
        t->esp,
        t->ss,
    };
    if (fault_is_stack_overflow(t->esp))
        panic_trap(&tf, "kernel stack overflow (esp %08x)", t->esp);
    panic_trap(&tf, "double fault (esp %08x, address %08x)", t->esp,
               read_cr2());
}
