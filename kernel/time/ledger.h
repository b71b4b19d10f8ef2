// The ledger: per-CPU time accounting. On every CPU exactly one account is open
// at any moment. Each switch of accounts reads the TSC once and charges the
// account that it closes, so on each CPU the sum of all accounts is the TSC
// time since its ledger began, to the cycle.
//
// An account is opened by subtracting the TSC from it and closed by adding the
// TSC to it. An open account therefore reads too low by the current TSC. With
// that added, the sum of all accounts of a CPU is always TSC(now) - TSC(began),
// whichever account is opened when.
//
// Writers: only the CPU on which an account is open, with interrupts off, by
// the operations of arch/account.h, which tolerate an NMI between any two
// instructions. Readers on other CPUs use the sequence counter `seq`, which is
// odd during a switch, and retry. An NMI that finds `seq` odd changes no
// account.
//
// A thread's time is divided into user and kernel time in the same way. Per
// thread: its total, and as a part of that its user time, which is open in user
// mode. Per CPU: the total of all threads, and as a part of that their kernel
// time, which is open in the kernel.
//
// User time runs from the program's first instruction to its last. But entry.S
// reads the TSC after it has saved the registers, at an entry, and before it
// restores them, at an exit. The cycles outside of the two readings, `outside`,
// are constant. They are measured once and charged to the kernel in advance: an
// exit closes the kernel's part, and opens the user's, as of a time so much
// later, `user_since`. Until then readers take `user_since` for the current
// time. An entry before `user_since`, because the CPU is faster than it was at
// the measurement, waits for it and reduces `outside`. An NMI in these parts of
// the kernel is outside of user time, too: all of it, as far as it reads the
// TSC, and `nmi_outside` for the rest (ledger_nmi.h).
#pragma once

#include "arch/account.h"
#include "kernel/base/thread.h"
#include "lib/counter.h"
#include "lib/seqcount.h"

// The subsystems that the kernel time of threads is charged to. A system call
// is charged to its family (syscalls.def), a page fault to memory, a context
// switch to scheduling, also when nested in another subsystem. subsystem_enter
// switches; its caller restores the previous subsystem.
#define SUBSYSTEMS(S)           \
    S(MEMORY, "memory")         \
    S(FILES, "files")           \
    S(IPC, "ipc")               \
    S(SCHEDULING, "scheduling") \
    S(TIME, "time")             \
    S(PROFILING, "profiling")   \
    S(MONITORING, "monitoring") \
    S(TASKS, "tasks")           \
    S(SIGNALS, "signals")       \
    S(OTHER, "other")

enum subsystem {
#define SUBSYSTEM_ENUM(upper, name) IN_##upper,
    SUBSYSTEMS(SUBSYSTEM_ENUM)
#undef SUBSYSTEM_ENUM
        SUBSYSTEM_COUNT
};

UPCALL extern const enum subsystem syscall_family[]; // read by entry.S

#define LEDGER_EXCEPTIONS 32

// One per CPU. Vector accounts: interrupts 0x20-0xff, and NMI.
struct ledger {
    struct account *open; // these offsets are known to entry.S
    struct seqcount seq;
    // `threads` is the time of all threads on this CPU, open while any thread's
    // account is. `in` is the kernel time contained in it, by subsystem:
    // in[subsystem] is open while a thread is in the kernel. threads + idle +
    // start_up + vectors == elapsed time. Summed over all CPUs, `threads` and
    // `in` equal the sums of the threads' own accounts.
    u64 threads;
    u32 subsystem; // enum subsystem
    u32 irq_began; // TSC, low half, at the entry of the newest interrupt
    u64 in[SUBSYSTEM_COUNT];
    u64 user_since;  // TSC; see above
    u32 outside;     // cycles
    u32 nmi_outside; // the same of an NMI in the kernel
    u64 began;
    struct account idle;     // ledger_nmi.h depends on what follows accounts
    struct account start_up; // before the first thread runs
    struct account vectors[256];
    // Cycles of exceptions, contained in the accounts above: sums of their own,
    // not accounts.
    u64 exceptions[LEDGER_EXCEPTIONS];
    // Cycles of all NMIs, low half; and of those NMIs whose cycles stay charged
    // to the interrupted account; and the entry of the newest NMI (TSC, low
    // half). Written by NMIs.
    u32 nmi_cycles, nmi_began;
    struct counter nmi_unaccounted;
};

// The entry of `vectors` for interrupts that take samples, moved there from the
// accounts of their own vectors. No interrupt has this vector.
#define LEDGER_SAMPLING 0x20

// Sets `outside` and `nmi_outside` on all CPUs.
void ledger_set_outside(u32 cycles, u32 nmi_cycles);

// The ledger of a CPU before ledger_init_cpu: NMIs charge nothing to it.
extern struct ledger ledger_none;
void ledger_init_cpu(struct cpu *cpu);

static ALWAYS_INLINE struct ledger *this_ledger(void)
{
    return this_cpu_read(ledger);
}

// --- parts of a switch ------------------------------------------------------

// The write section of `seq`: other CPUs read all of it or retry. On its own
// CPU, with interrupts off; it must not wait.
static ALWAYS_INLINE struct ledger *ledger_write_begin(void)
{
    struct ledger *l = this_ledger();
    seqcount_write_begin(&l->seq);
    return l;
}
static ALWAYS_INLINE void ledger_write_end(struct ledger *l)
{
    seqcount_write_end(&l->seq);
}

// Close the open account and open the next one, at `now`, which was read after
// write_begin.
static ALWAYS_INLINE void ledger_close(struct ledger *l, u64 now)
{
    account_add(&READ_ONCE(l->open)->cycles, now);
}
static ALWAYS_INLINE void ledger_open(struct ledger *l, struct account *next,
                                      u64 now)
{
    account_subtract(&next->cycles, now);
    WRITE_ONCE(l->open, next);
}
static ALWAYS_INLINE void ledger_close_kernel(struct ledger *l, u64 now)
{
    account_add(&l->threads, now);
    account_add(&l->in[READ_ONCE(l->subsystem)], now);
}
static ALWAYS_INLINE void ledger_open_kernel(struct ledger *l, u64 now)
{
    account_subtract(&l->threads, now);
    account_subtract(&l->in[READ_ONCE(l->subsystem)], now);
}

// Switches of account. Interrupts must be off. NMI-safe. Those at an entry take
// `now`, which entry.S has read from the TSC with `seq` odd.

// The end of user time: `now`, but not before `user_since`, which it waits for.
u64 ledger_await_user(u64 now, struct ledger *l);

// Added to `seq` instead of 1 at the begin and at the end of the way out, so
// bit 31 is set between. The thread's kernel account is open there, and NMIs
// may change it, though `seq` is odd. (Twice this is 2.)
#define LEDGER_LEAVING 0x80000001u

// The last C code before user mode: begins a write section, which entry.S
// completes, and returns the thread's kernel time so far. Readers on other CPUs
// see all that is counted until user mode as one change. (The thread's account
// is open, so the TSC is added to it.)
static ALWAYS_INLINE u64 ledger_leave_begin(struct ledger *l,
                                            const struct thread_base *t)
{
    word_add(&l->seq.value, LEDGER_LEAVING);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return account_now_plus_minus(&t->total.cycles, &t->user);
}
// The part of the kernel time `had` that is not counted yet. The cycles of the
// remaining way out are counted with the next system call or exception of the
// thread.
static ALWAYS_INLINE u64 ledger_uncounted(struct thread_base *t, u64 had)
{
    u64 cycles = account_minus(had, &t->counted);
    account_add(&t->counted, cycles);
    return cycles;
}

// After an interrupt: marks all kernel time as counted.
static ALWAYS_INLINE void ledger_leave(struct thread_base *t)
{
    u64 had = ledger_leave_begin(this_ledger(), t);
    WRITE_ONCE(t->counted, had);
}
// After an exception of this vector: counts its kernel time for the vector.
static ALWAYS_INLINE void ledger_exception_leave(struct thread_base *t,
                                                 u32 vector)
{
    struct ledger *l = this_ledger();
    u64 had = ledger_leave_begin(l, t);
    account_add(&l->exceptions[vector], ledger_uncounted(t, had));
}
// The switches of entry.S, for use in the kernel: code between the two, with
// interrupts off, is charged as the thread's user time
// (arch/i386/cpu/entry_cost.c).
void ledger_kernel_to_user(struct thread *t);
void ledger_user_to_kernel(struct thread *t);

// Switches the subsystem of a thread in the kernel, whose account is open.
// Returns the previous subsystem. Interrupts must be off. (OPAQUE: where the
// switch back is inlined too, its address is not kept until then.)
static ALWAYS_INLINE enum subsystem ledger_divide(enum subsystem next)
{
    struct ledger *l = ledger_write_begin();
    enum subsystem left = READ_ONCE(l->subsystem);
    u64 now = account_now();
    account_add(&l->in[left], now);
    WRITE_ONCE(l->subsystem, next);
    account_subtract(&l->in[next], now);
    ledger_write_end(l);
    return OPAQUE(left);
}
// The same with interrupts on or off: for code that belongs to another
// subsystem than its system call.
//     enum subsystem was = subsystem_enter(IN_PROFILING);
//     ...
//     subsystem_enter(was);
static inline enum subsystem subsystem_enter(enum subsystem next)
{
    u32 flags = irq_save();
    enum subsystem left = ledger_divide(next);
    irq_restore(flags);
    return left;
}
// From one thread to another, in the kernel (context switch). Returns the time
// of the switch, as the following ones do.
static ALWAYS_INLINE u64 ledger_switch(struct account *thread)
{
    struct ledger *l = ledger_write_begin();
    u64 now = account_now();
    ledger_close(l, now);
    ledger_open(l, thread, now);
    ledger_write_end(l);
    return now;
}
// The idle thread halts, and resumes; both return the time:
static ALWAYS_INLINE u64 ledger_idle_enter(void)
{
    struct ledger *l = ledger_write_begin();
    u64 now = account_now();
    ledger_close(l, now);
    ledger_close_kernel(l, now);
    ledger_open(l, &l->idle, now);
    ledger_write_end(l);
    return now;
}
static ALWAYS_INLINE u64 ledger_idle_leave(struct account *thread)
{
    struct ledger *l = ledger_write_begin();
    u64 now = account_now();
    ledger_close(l, now);
    ledger_open_kernel(l, now);
    ledger_open(l, thread, now);
    ledger_write_end(l);
    return now;
}
// The start-up code of this CPU becomes a thread:
static ALWAYS_INLINE void ledger_start_up_done(struct account *thread)
{
    ledger_idle_leave(thread);
}

// Around the handler of an interrupt from user mode. After the handler the
// thread is in the kernel, in scheduling: switches and signals may be due.
static ALWAYS_INLINE u64 ledger_user_to_irq(struct thread_base *t, u32 vector,
                                            u64 now)
{
    struct ledger *l = this_ledger();
    if (unlikely((s32)((u32)now - (u32)l->user_since) < 0))
        now = ledger_await_user(now, l);
    account_add(&t->user, now);
    ledger_close(l, now);
    account_add(&l->threads, now);
    l->irq_began = (u32)now;
    ledger_open(l, &l->vectors[vector], now);
    ledger_write_end(l);
    return now;
}
static ALWAYS_INLINE u64 ledger_irq_to_kernel(struct account *thread)
{
    struct ledger *l = ledger_write_begin();
    u64 now = account_now();
    WRITE_ONCE(l->subsystem, IN_SCHEDULING);
    ledger_close(l, now);
    ledger_open_kernel(l, now);
    ledger_open(l, thread, now);
    ledger_write_end(l);
    return now;
}
// Around the handler of an interrupt from the kernel. Returns the account that
// was open, which ledger_irq_leave opens again.
static ALWAYS_INLINE struct account *ledger_irq_enter(u32 vector, u64 now)
{
    struct ledger *l = this_ledger();
    struct account *interrupted = l->open;
    l->irq_began = (u32)now;
    account_add(&interrupted->cycles, now);
    if (interrupted != &l->idle)
        ledger_close_kernel(l, now);
    ledger_open(l, &l->vectors[vector], now);
    ledger_write_end(l);
    return interrupted;
}
// In an interrupt's handler, at `now`: charges the whole of this interrupt,
// from its entry, to LEDGER_SAMPLING instead of its vector. False: done
// already.
static ALWAYS_INLINE bool ledger_irq_samples(u64 now)
{
    struct ledger *l = this_ledger();
    struct account *sampling = &l->vectors[LEDGER_SAMPLING], *open = l->open;
    if (open == sampling)
        return false;
    ledger_write_begin();
    u64 began = now - ((u32)now - l->irq_began);
    // Marked: a reader on another CPU may read them now; it retries.
    WRITE_ONCE(open->cycles, open->cycles + began);
    WRITE_ONCE(sampling->cycles, sampling->cycles - began);
    // An NMI since the entry has subtracted its time from `open`. A closed
    // account must not be negative, so the difference is moved.
    if (unlikely((s64)open->cycles < 0)) {
        WRITE_ONCE(sampling->cycles, sampling->cycles + open->cycles);
        WRITE_ONCE(open->cycles, 0);
    }
    l->open = sampling;
    ledger_write_end(l);
    return true;
}
static ALWAYS_INLINE u64 ledger_irq_leave(struct account *interrupted)
{
    struct ledger *l = ledger_write_begin();
    u64 now = account_now();
    ledger_close(l, now);
    if (interrupted != &l->idle)
        ledger_open_kernel(l, now);
    ledger_open(l, interrupted, now);
    ledger_write_end(l);
    return now;
}
// The value of the current thread's account, which is open. Interrupts must be
// off. `seq` is odd during the reading, so that no NMI subtracts from it.
static ALWAYS_INLINE u64 ledger_open_cycles(const struct account *thread)
{
    struct ledger *l = ledger_write_begin();
    u64 cycles = account_plus(account_now(), &thread->cycles);
    ledger_write_end(l);
    return cycles;
}
// Called while all CPUs have interrupts off and switch no accounts: keeps NMIs
// from changing any, too, until ledger_thaw. One caller at a time.
void ledger_freeze(void);
void ledger_thaw(void);

// The value of `a`, which is, or was last, open on `cpu`. Any CPU; not in NMI
// context. See thread_times for accounts of threads, which move between CPUs.
u64 ledger_read(const struct cpu *cpu, const struct account *a);
// The same for a thread's account, divided into user and kernel time.
void ledger_read_thread(const struct cpu *cpu, const struct thread *t,
                        u64 *user, u64 *kernel);
// For a thread whose account is open: whether its user time is open, too.
static inline bool ledger_in_user(u64 user)
{
    return (s64)user < 0;
}
// The sums of all accounts of a CPU. Together they are `elapsed`.
struct ledger_sums {
    u64 user, kernel, irq, idle, start_up;
    u64 elapsed;             // TSC now - TSC when this CPU's ledger began
    u64 in[SUBSYSTEM_COUNT]; // `kernel` is their sum
};
void ledger_sums(u32 cpu, struct ledger_sums *out);
// The same at TSC `now`, while no account of that CPU can change; `irq` is
// added up, too, so that the audit can compare all sums with `elapsed`.
void ledger_sums_at(u32 cpu, u64 now, struct ledger_sums *out);

// Counts `cycles` of the current thread's kernel time for an exception.
static inline void ledger_count_exception(u32 vector, u64 cycles)
{
    struct ledger *l = ledger_write_begin();
    WRITE_ONCE(l->exceptions[vector], l->exceptions[vector] + cycles);
    ledger_write_end(l);
}
// The read section of `seq`, on any CPU: repeat until retry returns false. Not
// in NMI context.
u32 ledger_read_begin(u32 cpu);
bool ledger_read_retry(u32 cpu, u32 seq);
// For a reader that does not know which CPU writes: all writes in progress at
// the call are complete on return. A value that is the same before and after
// the call is consistent.
void ledger_writers_done(void);
// Cycles of exceptions of this vector on a CPU.
u64 ledger_exception_cycles(u32 cpu, u32 vector);
