// The ledger: on every CPU exactly one account is open at any moment. Each
// change reads the TSC once and charges the account that closes, so on each CPU
// the sum of all accounts is the TSC time since its ledger began, to the cycle.
//
// How: an account is opened by subtracting the TSC from it and closed by adding
// the TSC to it. While it is open it therefore reads too low by the TSC of now,
// and over all accounts of a CPU the sum is always TSC(now) - TSC(began): the
// books balance by construction, whatever is opened when.
//
// Only the CPU that has an account open writes it. An NMI that switches there
// and back in the middle of a switch does no harm: both halves of a 64-bit
// addition may be interrupted, for the carry lives in the flags that the NMI
// saves, and each addition the NMI makes is complete in itself.
//
// `seq` is odd while a switch is under way: other CPUs read again.
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

#include "kernel/base/thread.h"
#include "lib/counter.h"

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
    struct account *open; // these offsets are known to assembly
    u32 seq;
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
    struct ledger *l;
    __asm__ volatile("movl %%fs:%c1, %0"
                     : "=r"(l)
                     : "i"(offsetof(struct cpu, ledger)));
    return l;
}

// The rest of a change at `now`, the TSC, which was read with `seq` odd: closes
// the open account of `l`, opens `next_account`, and does `TOTALS`.
#define LEDGER_MOVE_AT(l, now, next_account, TOTALS)                       \
    __asm__ volatile("movl (%[ledger]), %%ecx\n\t"                         \
                     "addl %%eax, (%%ecx)\n\t"                             \
                     "adcl %%edx, 4(%%ecx)\n\t" TOTALS                     \
                     "subl %%eax, (%[next])\n\t"                           \
                     "sbbl %%edx, 4(%[next])\n\t"                          \
                     "movl %[next], (%[ledger])\n\t"                       \
                     "incl 4(%[ledger])"                                   \
                     :                                                     \
                     : [ledger] "r"(l), [next] "r"(next_account), "A"(now) \
                     : "ecx", "cc", "memory")
#define LEDGER_MOVE(l, next_account, TOTALS)                 \
    do {                                                     \
        u64 ledger_now;                                      \
        __asm__ volatile("incl 4(%1)\n\trdtsc"               \
                         : "=A"(ledger_now)                  \
                         : "r"(l)                            \
                         : "cc", "memory");                  \
        LEDGER_MOVE_AT(l, ledger_now, next_account, TOTALS); \
    } while (0)

#define CLOSE_THREADS \
    "addl %%eax, 8(%[ledger])\n\tadcl %%edx, 12(%[ledger])\n\t"
#define OPEN_THREADS "subl %%eax, 8(%[ledger])\n\tsbbl %%edx, 12(%[ledger])\n\t"
#define BEGIN_IRQ "movl %%eax, 20(%[ledger])\n\t"
#define CLOSE_KERNEL                          \
    CLOSE_THREADS                             \
    "movl 16(%[ledger]), %%ecx\n\t"           \
    "addl %%eax, 24(%[ledger], %%ecx, 8)\n\t" \
    "adcl %%edx, 28(%[ledger], %%ecx, 8)\n\t"
#define OPEN_KERNEL                           \
    OPEN_THREADS                              \
    "movl 16(%[ledger]), %%ecx\n\t"           \
    "subl %%eax, 24(%[ledger], %%ecx, 8)\n\t" \
    "sbbl %%edx, 28(%[ledger], %%ecx, 8)\n\t"

// The changes of account. Interrupts must be off. NMI-safe. Those at an entry
// take `now`, which entry.S has read from the TSC with `seq` odd.

// When user time is over: at `now`, but not before `user_since`.
u64 ledger_await_user(u64 now, struct ledger *l);

// The last that C does before user mode: marks the ledger as changing, which
// entry.S goes on with, and does `COUNT`, which belongs together for readers on
// other CPUs, with what the thread has had in the kernel, in edx:eax. (Its
// account is open, and so short of the TSC by what it was opened at. The user
// time lies behind it, and behind that `counted`.) `ledger` gets the ledger.
#define LEDGER_LEAVE(COUNT)                      \
    "movl %%fs:%c[ledger_of_cpu], %[ledger]\n\t" \
    "incl 4(%[ledger])\n\t"                      \
    "rdtsc\n\t"                                  \
    "addl (%[thread]), %%eax\n\t"                \
    "adcl 4(%[thread]), %%edx\n\t"               \
    "subl 8(%[thread]), %%eax\n\t"               \
    "sbbl 12(%[thread]), %%edx\n\t" COUNT
#define LEDGER_OF_CPU [ledger_of_cpu] "i"(offsetof(struct cpu, ledger))

// All of it is counted.
static ALWAYS_INLINE void ledger_leave(struct account *thread)
{
    u32 ledger;
    __asm__ volatile(LEDGER_LEAVE("movl %%eax, 16(%[thread])\n\t"
                                  "movl %%edx, 20(%[thread])")
                     : [ledger] "=&r"(ledger)
                     : [thread] "r"(thread), LEDGER_OF_CPU
                     : "eax", "edx", "cc", "memory");
}
// What was not counted yet, into edx:eax. The rest of the way out is found in
// it by the next call or exception that ends.
#define LEDGER_UNCOUNTED            \
    "subl 16(%[thread]), %%eax\n\t" \
    "sbbl 20(%[thread]), %%edx\n\t" \
    "addl %%eax, 16(%[thread])\n\t" \
    "adcl %%edx, 20(%[thread])\n\t"

// After an exception of this vector, of which it is counted.
static ALWAYS_INLINE void ledger_exception_leave(struct account *thread,
                                                 u32 vector)
{
    u32 ledger;
    __asm__ volatile(
        LEDGER_LEAVE(LEDGER_UNCOUNTED
                     "addl %%eax, %c[exceptions](%[ledger], %[vector], 8)\n\t"
                     "adcl %%edx, 4+%c[exceptions](%[ledger], %[vector], 8)")
        : [ledger] "=&r"(ledger)
        : [thread] "r"(thread), [vector] "r"(vector),
          LEDGER_OF_CPU, [exceptions] "i"(offsetof(struct ledger, exceptions))
        : "eax", "edx", "cc", "memory");
}
// The changes of entry.S, in the kernel: what runs there in between, with
// interrupts off, is the thread's user time (arch/i386/cpu/entry_cost.c).
void ledger_kernel_to_user(struct thread *t);
void ledger_user_to_kernel(struct thread *t);

// From one subsystem to another, of a thread in the kernel, whose account is
// open; gives back the one that was left. Interrupts must be off.
static ALWAYS_INLINE enum subsystem ledger_divide(enum subsystem next)
{
    u32 left;
    __asm__ volatile("incl 4(%[ledger])\n\t"
                     "movl 16(%[ledger]), %[left]\n\t"
                     "rdtsc\n\t"
                     "addl %%eax, 24(%[ledger], %[left], 8)\n\t"
                     "adcl %%edx, 28(%[ledger], %[left], 8)\n\t"
                     "movl %[next], 16(%[ledger])\n\t"
                     "subl %%eax, 24(%[ledger], %[next], 8)\n\t"
                     "sbbl %%edx, 28(%[ledger], %[next], 8)\n\t"
                     "incl 4(%[ledger])"
                     : [left] "=&r"(left)
                     : [ledger] "r"(this_ledger()), [next] "r"(next)
                     : "eax", "edx", "cc", "memory");
    return left;
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
    LEDGER_MOVE(this_ledger(), thread, );
}
// The idle thread halts, and goes on:
static ALWAYS_INLINE void ledger_idle_enter(void)
{
    LEDGER_MOVE(this_ledger(), &this_ledger()->idle, CLOSE_KERNEL);
}
static ALWAYS_INLINE void ledger_idle_leave(struct account *thread)
{
    LEDGER_MOVE(this_ledger(), thread, OPEN_KERNEL);
}
// The start-up code of this CPU becomes a thread:
static ALWAYS_INLINE void ledger_start_up_done(struct account *thread)
{
    ledger_idle_leave(thread);
}

// What else is written so that others read it whole: on its own CPU, with
// interrupts off and nothing that waits in between.
static inline struct ledger *ledger_write_begin(void)
{
    struct ledger *l = this_ledger();
    // In one instruction: an NMI changes `seq`, too.
    __asm__ volatile("incl %0" : "+m"(l->seq) : : "memory");
    return l;
}
static inline void ledger_write_end(struct ledger *l)
{
    __asm__ volatile("incl %0" : "+m"(l->seq) : : "memory");
}

// Around the handler of an interrupt of user mode. After it the thread is in
// the kernel: switches and signals may be due (scheduling).
static ALWAYS_INLINE void ledger_user_to_irq(struct account *thread, u32 vector,
                                             u64 now)
{
    struct ledger *l = this_ledger();
    if (unlikely((s32)((u32)now - (u32)l->user_since) < 0))
        now = ledger_await_user(now, l);
    __asm__ volatile("addl %%eax, 8(%[thread])\n\t"
                     "adcl %%edx, 12(%[thread])"
                     :
                     : [thread] "r"(thread), "A"(now)
                     : "cc", "memory");
    LEDGER_MOVE_AT(l, now, &l->vectors[vector], CLOSE_THREADS BEGIN_IRQ);
}
static ALWAYS_INLINE void ledger_irq_to_kernel(struct account *thread)
{
    struct ledger *l = this_ledger();
    l->subsystem = IN_SCHEDULING;
    LEDGER_MOVE(l, thread, OPEN_KERNEL);
}
// Around that of an interrupt of the kernel: the account that was open, to give
// back; it is opened again.
static ALWAYS_INLINE struct account *ledger_irq_enter(u32 vector, u64 now)
{
    struct ledger *l = this_ledger();
    struct account *interrupted = l->open, *next = &l->vectors[vector];
    if (interrupted == &l->idle)
        LEDGER_MOVE_AT(l, now, next, BEGIN_IRQ);
    else
        LEDGER_MOVE_AT(l, now, next, BEGIN_IRQ CLOSE_KERNEL);
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
    struct ledger *l = this_ledger();
    if (interrupted == &l->idle)
        LEDGER_MOVE(l, interrupted, );
    else
        LEDGER_MOVE(l, interrupted, OPEN_KERNEL);
}
// What the account of the current thread, which is open, has come to.
// Interrupts must be off. NMIs take nothing out of it meanwhile.
static ALWAYS_INLINE u64 ledger_open_cycles(const struct account *thread)
{
    u64 cycles;
    __asm__ volatile("incl 4(%[ledger])\n\t"
                     "rdtsc\n\t"
                     "addl (%[thread]), %%eax\n\t"
                     "adcl 4(%[thread]), %%edx\n\t"
                     "incl 4(%[ledger])"
                     : "=&A"(cycles)
                     : [ledger] "r"(this_ledger()), [thread] "r"(thread)
                     : "cc", "memory");
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
