// One CPU: its private data and the primitive operations on it.
#pragma once

#include "arch/call_trace.h"
#include "arch/instructions.h"
#include "lib/branch.h"
#include "lib/cpu_set.h"
#include "lib/list.h"
#include "lib/types.h"

#define LOCK_CLASSES 192

struct thread;
struct trapframe;
struct aspace;
struct trace_cpu;

// Per-CPU data. In the kernel %fs selects this structure on every CPU, from the
// first C instruction on (entry code reloads it). The first is read at
// %fs:0 (arch/i386/cpu).
struct cpu {
    struct cpu *self;      // %fs:0
    struct thread *thread; // %fs:4, the running thread, never NULL
                           // once the scheduler has started
    int preempt_count;     // %fs:8, > 0: no thread switch
    int need_resched;      // %fs:12, a marked access: written under the run
                           // queue's lock or by this CPU's interrupts; a
                           // reader that is too early is interrupted
    u32 irq_depth;         // > 0: in an interrupt handler
    u32 id;                // 0 .. cpu_count-1; 0 is the boot CPU
    u32 apic_id;
    bool online;
    struct trapframe *irq_frame; // what the innermost interrupt interrupted
    struct aspace *aspace;       // of the loaded page tables (NULL: kernel's)

    struct run_queue *rq;            // kernel/sched
    struct ledger *ledger;           // kernel/time
    struct call_cpu calls;           // call tracing
    struct trace_cpu *trace;         // kernel/trace/emit.c
    struct counter *irq_counts;      // arch/irq.h, by vector
    struct callouts *callouts;       // kernel/time
    struct frame_cache *frame_cache; // kernel/mm
    struct syscall_counts *syscalls; // kernel/syscall
    void *idle_stack_top;
    u32 set_word, set_bit;         // its place in a struct cpu_set
    u32 locks_taken[LOCK_CLASSES]; // kernel/sync/lock_class.h
    // It waits for need_resched: a store wakes it, without an interrupt.
    // Written by itself; marked.
    u32 idle_watches;
    struct arch_cpu *arch; // gdt, tss, ...: private to arch/
};

extern struct cpu *cpus[CPU_MAX]; // those from cpu_count on may be NULL
extern u32 cpu_count;             // CPUs that are online

static ALWAYS_INLINE struct cpu *this_cpu(void)
{
    struct cpu *c;
    // Not a pure read: a preempted thread may continue on another CPU.
    __asm__ volatile("movl %%fs:0, %0" : "=r"(c));
    return c;
}

// The running thread. Stable for the caller, whichever CPU it moves to.
static ALWAYS_INLINE struct thread *current_thread(void)
{
    struct thread *t;
    __asm__ volatile("movl %%fs:4, %0" : "=r"(t));
    return t;
}
#define current current_thread()

// A preemptible thread that dereferences this_cpu() may have moved to another
// CPU before it reads a member. Members that may be read at any time are read
// by one instruction.
#define this_cpu_read(member)                                    \
    ({                                                           \
        __typeof__(((struct cpu *)0)->member) cpu_value;         \
        _Static_assert(sizeof(cpu_value) == 4, "this_cpu_read"); \
        __asm__ volatile("movl %%fs:%c1, %0"                     \
                         : "=r"(cpu_value)                       \
                         : "i"(offsetof(struct cpu, member)));   \
        cpu_value;                                               \
    })

// Preemption control. Nests; any context. While preemption is disabled the
// thread stays on its CPU and must not sleep. One instruction each, so safe
// against migration.
static ALWAYS_INLINE void preempt_disable(void)
{
    __asm__ volatile("incl %%fs:8" ::: "memory");
}
static ALWAYS_INLINE void preempt_enable_no_resched(void)
{
    __asm__ volatile("decl %%fs:8" ::: "memory");
}
// Switches at once if a switch became due while preemption was disabled
// (kernel/sched).
UPCALL void preempt_enable(void);

static ALWAYS_INLINE void irq_enable(void)
{
    __asm__ volatile("sti" ::: "memory");
}
static ALWAYS_INLINE void irq_disable(void)
{
    __asm__ volatile("cli" ::: "memory");
}
static ALWAYS_INLINE u32 irq_flags(void)
{
    u32 f;
    __asm__ volatile("pushfl; popl %0" : "=r"(f));
    return f;
}
// Whether interrupts were on when irq_flags or irq_save returned `flags`.
static ALWAYS_INLINE bool irq_state_on(u32 flags)
{
    return flags & 0x200;
}
static ALWAYS_INLINE bool irqs_enabled(void)
{
    return irq_state_on(irq_flags());
}
// Disables interrupts; returns the state for irq_restore.
static ALWAYS_INLINE u32 irq_save(void)
{
    u32 f;
    __asm__ volatile("pushfl; popl %0; cli" : "=r"(f)::"memory");
    return f;
}
static ALWAYS_INLINE void irq_restore(u32 flags)
{
    if (irq_state_on(flags))
        irq_enable();
}

// Executes n or n - 1 instructions without effect.
static inline void cpu_run_instructions(u32 n)
{
    n /= 2; // a decrement and a jump
    if (n)
        __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
}
// Idle CPUs wait for a store to need_resched, too (arch/i386/cpu/idle.c).
// Constant after start-up.
extern struct branch idle_watching;
void cpu_idle_watch(void);
// Enables interrupts and waits until one occurs, with no gap between the two;
// or until need_resched is set, or for less long. Interrupts off, also on
// return.
static ALWAYS_INLINE void cpu_idle_wait(void)
{
    if (branch_on(&idle_watching))
        cpu_idle_watch();
    else
        __asm__ volatile("sti; hlt; cli" ::: "memory");
}
// Whether `cpu` will see without an interrupt that the caller, who holds its
// run queue's lock, sets need_resched next.
static ALWAYS_INLINE bool cpu_idle_sees(const struct cpu *cpu)
{
    return branch_on(&idle_watching) && READ_ONCE(cpu->idle_watches);
}
NORETURN void cpu_halt_forever(void);

// CPUID's feature flags (arch/i386/cpu/features.c), of the boot CPU.
struct cpu_features {
    bool pae, nx, pge, pse, smep, smap, umip, fxsr, sse, apic, x2apic,
        tsc_deadline, invariant_tsc, hypervisor, mce, mca, pat,
        thermal;       // a digital sensor, which interrupts
    bool pae_unused;   // the CPU has PAE, but not what PAE needs (boot.S)
    u32 physical_bits; // MAXPHYADDR: width of a physical address
    u32 family, model, stepping;
    char vendor[13], brand[49];
};
extern struct cpu_features cpu_features;

// The end of what page tables reach. Address bits from MAXPHYADDR on are
// reserved in their entries (SDM vol. 3A, 4.1.4, 4.4.2): an access through one
// that has them set is a page fault. Without PAE it is 4 GiB (4.3).
static inline u64 paddr_limit(void)
{
    return 1ull << (cpu_features.pae ? cpu_features.physical_bits : 32);
}

// Start-up order, called by kernel/init/main.c:
void arch_init_early(void);   // GDT, IDT, features of the boot CPU; %fs works
void arch_init_memory(void);  // final page tables: W^X, NX, direct map (after
                              // frame_init; see arch/mmu.h)
void arch_init_devices(void); // ACPI, interrupt controllers, clocks
u32 smp_cpus_expected(void);  // CPUs that smp_start will start, with this one;
                              // after arch_init_devices
void smp_start(void);         // starts the other CPUs; each runs cpu_main()
                              // (kernel/init) on its idle stack. Returns when
                              // all are online or have timed out (logged).

// Runs `fn(arg)` on every other online CPU, in its interrupt context, and waits
// until all have returned, with preemption disabled. Interrupts must be on,
// unless the caller is in panic. Several CPUs may call it at once.
void smp_call_others(void (*fn)(void *arg), void *arg);
// The same, and calls `meanwhile(arg)` here, again and again, until all have
// returned.
void smp_call_others_while(void (*fn)(void *arg), void *arg,
                           void (*meanwhile)(void *arg));
// Reports a call to the CPUs of `silent`, which have not answered, every 10 s:
// defined by the scheduler. Any context but NMI.
UPCALL void smp_call_unanswered(const struct cpu_set *silent,
                                void (*fn)(void *arg), u32 seconds);
// The same for the CPUs of `set` (this CPU is ignored), which is read once.
void smp_call_set(const struct cpu_set *set, void (*fn)(void *arg), void *arg);
// The same on this CPU, with interrupts off, and then on all others: once on
// each CPU, even if the caller migrates.
void smp_call_all(void (*fn)(void *arg), void *arg);
// On the boot CPU only, with interrupts off.
void smp_call_boot_cpu(void (*fn)(void *arg), void *arg);
// Quiesces the other CPUs: waits until each has taken an interrupt. Sections
// with interrupts off that were in progress on them have then ended, and NMIs
// sent before have been delivered.
void smp_quiesce_others(void);
// Makes `cpu` pass through its scheduler soon (reschedule IPI). Any context.
void smp_reschedule(struct cpu *cpu);
// Stops all other CPUs permanently, by NMI. Returns those that did not stop in
// time. For the end of the machine only.
struct cpu_set smp_stop_others(void);

// Powers off the machine (with `failed`, ends QEMU with the exit status of
// failed tests); resets it. Never return.
NORETURN void machine_power_off(bool failed);
NORETURN void machine_reset(void);
// Ends QEMU with the panic status; returns if the machine is not QEMU.
void machine_panic_exit(void);

// Fills `pcs` with up to `max` return addresses, starting at the frame pointer
// `frame`, and returns their number. Reads only mapped kernel memory; any
// context.
u32 backtrace(u32 frame, u32 *pcs, u32 max);
static ALWAYS_INLINE u32 frame_pointer(void)
{
    return (u32)__builtin_frame_address(0);
}

// Entry of another CPU: on its idle stack, this_cpu() works, its LAPIC is set
// up.
UPCALL NORETURN void cpu_main(void);
// The reschedule IPI: another CPU has queued a thread on this one.
UPCALL void sched_reschedule_interrupt(void);
// At the end of an interrupt in the kernel: switches threads if that is due.
UPCALL void sched_interrupt_exit(void);

// Adds `n`, a constant, to word `index` of an array of this CPU's. True: the
// sum has overflowed. One instruction.
#define this_cpu_add_carries(member, index, n)                        \
    ({                                                                \
        bool cpu_carry;                                               \
        _Static_assert(sizeof(((struct cpu *)0)->member[0]) == 4,     \
                       "this_cpu_");                                  \
        __asm__ volatile("addl %1, %%fs:%c2(, %3, 4)"                 \
                         : "=@ccc"(cpu_carry)                         \
                         : "i"(n), "i"(offsetof(struct cpu, member)), \
                           "r"(index)                                 \
                         : "memory");                                 \
        cpu_carry;                                                    \
    })

// Whether a word of this CPU's is not 0. One instruction.
#define this_cpu_is_set(member)                                              \
    ({                                                                       \
        bool cpu_set;                                                        \
        _Static_assert(sizeof(((struct cpu *)0)->member) == 4, "this_cpu_"); \
        __asm__ volatile("cmpl $0, %%fs:%c1"                                 \
                         : "=@ccne"(cpu_set)                                 \
                         : "i"(offsetof(struct cpu, member)));               \
        cpu_set;                                                             \
    })
