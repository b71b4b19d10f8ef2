// The ledger: on every CPU exactly one account is open at any moment. Each
// change reads the TSC once and charges the account that closes, so on each CPU
// the sum of all accounts is the TSC time since its ledger began, to the cycle.
//
// How: an account is opened by subtracting the TSC from it and closed by adding
// the TSC to it. While it is open it therefore reads too low by the TSC of now,
// and over all accounts of a CPU the sum is always TSC(now) - TSC(began): the
// books balance by construction, whatever is opened when.
//
// Only the CPU that has an account open writes it, by the moves of
// arch/account.h: an NMI may come between any two instructions. `seq` is odd
// while a switch is under way: other CPUs read again, and NMIs change nothing.
//
// A thread's time is divided into user and kernel time, in the same way: what
// it has had, and its user time as a part of that, which is open in user mode;
// and for the CPU what all threads have had, and the kernel's part of that,
// which is open in the kernel.
//
// User time is from the program's first instruction to its last. But the TSC is
// read (entry.S) when the registers are saved, at an entry, and before they are
// restored, at an exit. What lies outside of the two readings, `outside`, is
// the same each time. It is measured once, and charged to the kernel in
// advance: at an exit the kernel's part is closed, and the user's is opened, at
// a time so much later, `user_since`. To readers who come before it, it is that
// time already. An entry that comes before it, because the CPU is faster than
// it was when that was measured, waits for it, and makes `outside` less.
#pragma once

#include "arch/account.h"
#include "kernel/base/thread.h"
#include "lib/counter.h"
#include "lib/seqcount.h"

// What the kernel time of threads is for. A system call counts as its family
// (syscalls.def), a page fault as memory, a switch as scheduling, also inside
// of another: it is subsystem_enter that says so, and who enters goes back.
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

UPCALL extern const enum subsystem syscall_family[]; // entry.S looks there

#define LEDGER_EXCEPTIONS 32

// One a CPU. Vector accounts: interrupts 0x20-0xff, and NMI.
struct ledger {
    struct account *open; // these offsets are known to entry.S
    struct seqcount seq;
    // What threads had on this CPU, open while any thread's account is, and
    // what of it they had in the kernel, divided: in[subsystem] is open while a
    // thread is there. With idle, start_up and the vectors `threads` sums to
    // the elapsed time; and over all CPUs they are what the threads' own
    // accounts say.
    u64 threads;
    u32 subsystem; // enum subsystem
    u32 irq_began; // TSC, low half: when the newest interrupt was entered
    u64 in[SUBSYSTEM_COUNT];
    u64 user_since; // TSC; see above
    u32 outside;    // cycles
    u64 began;
    struct account idle;     // ledger_nmi.h knows what is behind accounts
    struct account start_up; // before the first thread runs
    struct account vectors[256];
    // What exceptions took of the above: not accounts, but sums beside them.
    u64 exceptions[LEDGER_EXCEPTIONS];
    // What all NMIs took, low half; and what those of them took that the books
    // leave with what they interrupted. Written by NMIs.
    u32 nmi_cycles;
    struct counter nmi_unbooked;
};

// Of `vectors`: the interrupts that take samples, moved there out of their own
// vectors' accounts. It is no interrupt's own.
#define LEDGER_SAMPLING 0x20

// What `outside` is, on all CPUs.
void ledger_set_outside(u32 cycles);

// What a CPU has until then: NMIs book nothing.
extern struct ledger ledger_none;
void ledger_init_cpu(struct cpu *cpu);

static ALWAYS_INLINE struct ledger *this_ledger(void)
{
    return this_cpu_read(ledger);
}

// --- the parts of a change --------------------------------------------------

// What is written from here to the end others read whole: on its own CPU, with
// interrupts off and nothing that waits in between.
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

// From the open account to the next one, at `now`, which was read since
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

// The changes of account. Interrupts must be off. NMI-safe. Those at an entry
// take `now`, which entry.S has read from the TSC with `seq` odd.

// When user time is over: at `now`, but not before `user_since`.
u64 ledger_await_user(u64 now, struct ledger *l);

// The last that C does before user mode: marks the ledger as changing, which
// entry.S goes on with, and gives what the thread has had in the kernel. What
// is counted of it until user mode belongs together for readers on other CPUs.
// (The thread's account is open, and so short of the TSC by what it was opened
// at.)
static ALWAYS_INLINE u64 ledger_leave_begin(struct ledger *l,
                                            const struct thread_base *t)
{
    seqcount_write_begin(&l->seq);
    return account_minus(account_plus(account_now(), &t->total.cycles),
                         &t->user);
}
// What of it was not counted yet. The rest of the way out is found in it by the
// next call or exception that ends.
static ALWAYS_INLINE u64 ledger_uncounted(struct thread_base *t, u64 had)
{
    u64 cycles = account_minus(had, &t->counted);
    account_add(&t->counted, cycles);
    return cycles;
}

// After an interrupt: all of it is counted.
static ALWAYS_INLINE void ledger_leave(struct thread_base *t)
{
    u64 had = ledger_leave_begin(this_ledger(), t);
    WRITE_ONCE(t->counted, had);
}
// After an exception of this vector, of which it is counted.
static ALWAYS_INLINE void ledger_exception_leave(struct thread_base *t,
                                                 u32 vector)
{
    struct ledger *l = this_ledger();
    u64 had = ledger_leave_begin(l, t);
    account_add(&l->exceptions[vector], ledger_uncounted(t, had));
}
// The changes of entry.S, in the kernel: what runs there in between, with
// interrupts off, is the thread's user time (arch/i386/cpu/entry_cost.c).
void ledger_kernel_to_user(struct thread *t);
void ledger_user_to_kernel(struct thread *t);

// From one subsystem to another, of a thread in the kernel, whose account is
// open; gives back the one that was left. Interrupts must be off. (OPAQUE:
// where the way back is inlined, too, no address of it is kept until then.)
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
// The same with interrupts on or off: a stretch of the thread's time that is
// another subsystem's than its system call's.
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
// From one thread to another, in the kernel (context switch):
static ALWAYS_INLINE void ledger_switch(struct account *thread)
{
    struct ledger *l = ledger_write_begin();
    u64 now = account_now();
    ledger_close(l, now);
    ledger_open(l, thread, now);
    ledger_write_end(l);
}
// The idle thread halts, and goes on:
static ALWAYS_INLINE void ledger_idle_enter(void)
{
    struct ledger *l = ledger_write_begin();
    u64 now = account_now();
    ledger_close(l, now);
    ledger_close_kernel(l, now);
    ledger_open(l, &l->idle, now);
    ledger_write_end(l);
}
static ALWAYS_INLINE void ledger_idle_leave(struct account *thread)
{
    struct ledger *l = ledger_write_begin();
    u64 now = account_now();
    ledger_close(l, now);
    ledger_open_kernel(l, now);
    ledger_open(l, thread, now);
    ledger_write_end(l);
}
// The start-up code of this CPU becomes a thread:
static ALWAYS_INLINE void ledger_start_up_done(struct account *thread)
{
    ledger_idle_leave(thread);
}

// Around the handler of an interrupt of user mode. After it the thread is in
// the kernel: switches and signals may be due (scheduling).
static ALWAYS_INLINE void ledger_user_to_irq(struct thread_base *t, u32 vector,
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
}
static ALWAYS_INLINE void ledger_irq_to_kernel(struct account *thread)
{
    struct ledger *l = ledger_write_begin();
    u64 now = account_now();
    WRITE_ONCE(l->subsystem, IN_SCHEDULING);
    ledger_close(l, now);
    ledger_open_kernel(l, now);
    ledger_open(l, thread, now);
    ledger_write_end(l);
}
// Around that of an interrupt of the kernel: the account that was open, to give
// back; it is opened again.
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
// In an interrupt's handler, at `now`: the whole of this interrupt, from where
// it was entered, is time of LEDGER_SAMPLING and not of its vector. False: it
// was already.
static ALWAYS_INLINE bool ledger_irq_samples(u64 now)
{
    struct ledger *l = this_ledger();
    struct account *sampling = &l->vectors[LEDGER_SAMPLING], *open = l->open;
    if (open == sampling)
        return false;
    ledger_write_begin();
    u64 began = now - ((u32)now - l->irq_began);
    // (Marked: a reader on another CPU may look now, and looks again.)
    WRITE_ONCE(open->cycles, open->cycles + began);
    WRITE_ONCE(sampling->cycles, sampling->cycles - began);
    // An NMI since then has taken its time out of the wrong one. One that is
    // closed is not to be below 0.
    if (unlikely((s64)open->cycles < 0)) {
        WRITE_ONCE(sampling->cycles, sampling->cycles + open->cycles);
        WRITE_ONCE(open->cycles, 0);
    }
    l->open = sampling;
    ledger_write_end(l);
    return true;
}
static ALWAYS_INLINE void ledger_irq_leave(struct account *interrupted)
{
    struct ledger *l = ledger_write_begin();
    u64 now = account_now();
    ledger_close(l, now);
    if (interrupted != &l->idle)
        ledger_open_kernel(l, now);
    ledger_open(l, interrupted, now);
    ledger_write_end(l);
}
// What the account of the current thread, which is open, has come to.
// Interrupts must be off. NMIs take nothing out of it meanwhile.
static ALWAYS_INLINE u64 ledger_open_cycles(const struct account *thread)
{
    struct ledger *l = ledger_write_begin();
    u64 cycles = account_plus(account_now(), &thread->cycles);
    ledger_write_end(l);
    return cycles;
}
// All CPUs have interrupts off and change no account: NMIs do not either until
// ledger_thaw. One at a time.
void ledger_freeze(void);
void ledger_thaw(void);

// What `a` has come to if it is, or was last, open on `cpu`. Any CPU may ask;
// not from NMI context. See thread_times for accounts of threads, which move.
u64 ledger_read(const struct cpu *cpu, const struct account *a);
// The same of a thread's account, divided.
void ledger_read_thread(const struct cpu *cpu, const struct thread *t,
                        u64 *user, u64 *kernel);
// Of a thread whose account is open: its user time is open, too.
static inline bool ledger_in_user(u64 user)
{
    return (s64)user < 0;
}
// What all accounts of a CPU came to.
struct ledger_sums {
    u64 user, kernel, irq, idle, start_up;
    u64 elapsed;             // TSC now - TSC when this CPU's ledger began
    u64 in[SUBSYSTEM_COUNT]; // of which `kernel` is the sum
};
void ledger_sums(u32 cpu, struct ledger_sums *out);
// The same as of the TSC `now`, when nothing can change there meanwhile.
void ledger_sums_at(u32 cpu, u64 now, struct ledger_sums *out);

// An exception has taken so many cycles of the current thread's kernel account.
static inline void ledger_count_exception(u32 vector, u64 cycles)
{
    struct ledger *l = ledger_write_begin();
    WRITE_ONCE(l->exceptions[vector], l->exceptions[vector] + cycles);
    ledger_write_end(l);
}
// For a reader on any CPU of what this CPU writes: again until retry is false.
// Not from NMI context.
u32 ledger_read_begin(u32 cpu);
bool ledger_read_retry(u32 cpu, u32 seq);
// For a reader who does not know which CPU writes: whatever was being written
// is complete when this returns. What read the same before and after is whole.
void ledger_writers_done(void);
// Cycles that exceptions of this vector took on a CPU.
u64 ledger_exception_cycles(u32 cpu, u32 vector);
