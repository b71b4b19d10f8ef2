// Exceptions, interrupts and system calls, called from entry.S.
//
// Interrupts are off at every entry. For an interrupt, entry.S passes the TSC
// as read at the entry and has made the ledger's sequence counter odd; for the
// other entries it has already switched the ledger to the thread's kernel time.
// Every return to user mode runs user_return_prepare, then makes the sequence
// counter odd for entry.S to complete the switch.

#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/fault.h"
#include "arch/i386/cpu/machine_check.h"
#include "arch/i386/cpu/registers.h"
#include "arch/i386/irq/controllers.h"
#include "arch/irq.h"
#include "arch/mmu.h"
#include "kernel/base/errors.h"
#include "kernel/base/log.h"
#include "kernel/base/signal.h"
#include "kernel/base/user_return.h"
#include "kernel/time/eventwatch.h"
#include "kernel/time/ledger.h"
#include "kernel/trace/point.h"

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
    MACHINE_CHECK = 18,
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

static ALWAYS_INLINE void return_to_user(struct trapframe *tf)
{
    user_return_prepare(tf);
    ledger_leave(current_base());
}

void trap_leave(struct trapframe *tf)
{
    return_to_user(tf);
}

// Work that NMIs have deferred.
static NOINLINE void do_deferred(struct arch_cpu *a)
{
    WRITE_ONCE(a->deferred, false);
    if (READ_ONCE(a->nmis) != a->nmis_logged)
        nmi_log_unclaimed(a);
    irq_deferred();
    event_watch_deferred();
}

// `began` is when the ledger opened the account of the interrupt.
static ALWAYS_INLINE void handle_interrupt(struct trapframe *tf, u64 began)
{
    struct cpu *c = this_cpu();
    struct trapframe *outer = c->irq_frame;
    c->irq_frame = tf;
    c->irq_depth++;
    if (branch_on(&call_tracing))
        call_trace_irq_begin(tf, began);
    TRACE(irq_enter, .vector = tf->vector, .at = (u32)began);
    irq_dispatch(tf->vector);
    TRACE(irq_exit, .vector = tf->vector);
    if (unlikely(READ_ONCE(c->arch->deferred)))
        do_deferred(c->arch);
    c->irq_depth--;
    c->irq_frame = outer;
}

// Called from entry.S: vectors 0x20 and above.
NOTRACE void trap_interrupt(u64 now, struct trapframe *tf)
{
    if (trap_from_user(tf)) {
        now = ledger_user_to_irq(current_base(), tf->vector, now);
        handle_interrupt(tf, now);
        now = ledger_irq_to_kernel(&current_base()->total);
        TRACE(irq_return, .at = (u32)now);
        if (branch_on(&call_tracing))
            call_trace_irq_end(tf, now);
        return_to_user(tf);
        return;
    }
    struct account *interrupted = ledger_irq_enter(tf->vector, now);
    handle_interrupt(tf, now);
    now = ledger_irq_leave(interrupted);
    TRACE(irq_return, .at = (u32)now);
    if (branch_on(&call_tracing))
        call_trace_irq_end(tf, now);
    if (unlikely(this_cpu_is_set(need_resched)))
        sched_interrupt_exit();
}

// Vectors that the manual reserves and that have no error code (SDM vol. 3,
// table 6-1). No CPU raises them as exceptions: they are interrupts with a
// vector of 16 to 31, or the vector 15 that some P6 CPUs deliver (their
// spurious interrupt erratum).
#define SPURIOUS_EXCEPTIONS 0x9fc08000u // 15, 22 to 28, 31

ERROR_COUNTER(spurious_exceptions, "unexpected exceptions",
              "none: the vector is reserved");

static bool is_spurious(u32 vector)
{
    if (!(SPURIOUS_EXCEPTIONS & 1u << vector))
        return false;
    error_count(&spurious_exceptions);
    if (apic_present && lapic_in_service(vector))
        lapic_eoi();
    return true;
}

static void use_fpu(void)
{
    if (fpu_first_use())
        return;
    irq_enable();
    memory_is_out(0);
}

// An exception in a user program. Called with interrupts off; returns with
// interrupts on, except after a first use of the FPU.
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
    case MACHINE_CHECK:
        machine_check(tf);
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
    default:
        if (is_spurious(tf->vector))
            break;
        // Not raised by any supported CPU.
        panic_trap(tf, "%s in a user program", exception_name(tf->vector));
    }
}

static bool breakpoint_has_owner(struct trapframe *tf)
{
    LINKER_SET_FOR_EACH(const struct breakpoint_owner, o, breakpoint_owners) {
        if ((*o)->hit(tf))
            return true;
    }
    return false;
}

// An exception in the kernel: a bug, unless the exception table has an entry,
// or somebody has set a breakpoint there.
static void kernel_exception(struct trapframe *tf)
{
    if (tf->vector == VECTOR_PAGE_FAULT) {
        fault_from_kernel(tf);
        return;
    }
    if (tf->vector == BREAKPOINT && breakpoint_has_owner(tf))
        return;
    if (tf->vector == MACHINE_CHECK) // also in a copy to or from user memory
        machine_check(tf);
    if (fault_fixup(&tf->eip) || is_spurious(tf->vector))
        return;
    panic_trap(tf, "%s (error %#x)", exception_name(tf->vector), tf->error);
}

const u8 trap_subsystems[EXCEPTIONS] = {
    [0 ... NO_FPU - 1] = IN_SIGNALS,
    [NO_FPU] = IN_SCHEDULING,
    [NO_FPU + 1 ... VECTOR_PAGE_FAULT - 1] = IN_SIGNALS,
    [VECTOR_PAGE_FAULT] = IN_MEMORY,
    [VECTOR_PAGE_FAULT + 1 ... EXCEPTIONS - 1] = IN_SIGNALS,
};

enum subsystem exception_subsystem(u32 vector)
{
    return trap_subsystems[vector];
}

// Called from entry.S: vectors 0 to 31, except NMI and double fault.
NOTRACE void trap_kernel_exception(struct trapframe *tf)
{
    irq_count_up(tf->vector);
    TRACE(trap_exception, .vector = tf->vector, .pc = linked_address(tf->eip),
          .user = false);
    const struct account *thread = &current_base()->total;
    if (this_ledger()->open != thread) { // in an interrupt, or start-up
        kernel_exception(tf);
        return;
    }
    u64 before = ledger_open_cycles(thread);
    enum subsystem was = ledger_divide(exception_subsystem(tf->vector));
    kernel_exception(tf);
    irq_disable();
    ledger_divide(was);
    ledger_count_exception(tf->vector, ledger_open_cycles(thread) - before);
}

NOTRACE void trap_user_exception(struct trapframe *tf)
{
    irq_count_up(tf->vector);
    TRACE(trap_exception, .vector = tf->vector, .pc = tf->eip, .user = true);
    user_exception(tf);
    user_return_prepare(tf);
    ledger_exception_leave(current_base(), tf->vector);
}

// Entered from entry.S as the task of the double fault gate, on its own stack:
// the interrupted state is in this CPU's TSS.
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
