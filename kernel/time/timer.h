// The timer registry: every hardware timer on the machine, ranked.
//
// A timer is found at start-up, reserved by one user at a time, by name or by
// what the user needs, and started and stopped by that user:
//
//     found -> reserved -> started -> reserved -> ... -> found
//
// A device is one static struct and one line, TIMER(its struct). It describes
// its capabilities once; its user need not know which device it got.
//
// Periods and their ranges are in nanoseconds, as all of the kernel's deadlines
// are. The actual period of a device is exact: `period` of its own ticks at
// `hz` ticks a second.
#pragma once

#include "arch/nmi.h"
#include "lib/counter.h"
#include "lib/set.h"
#include "lib/types.h"

struct trapframe;

// The capabilities of a timer, the needs of a user, and the mode of a start use
// the same bits.
#define TIMER_PERIODIC 0x01u
#define TIMER_ONESHOT 0x02u
// The callback runs on every CPU; without it, on the boot CPU only.
#define TIMER_ALL_CPUS 0x04u
// The callback runs on every CPU in NMI context. One timer at a time: an NMI
// does not identify its source.
#define TIMER_NMI 0x08u
// With PERIODIC: distances are random, with the period as mean
// (lib/random_distance.h), and the timer counts its shots. A shot that is past
// when it is set comes at once. The period is at least 4 times min_period, at
// most a 4th of max_period; a distance above that is cut.
#define TIMER_RANDOM 0x200u
#define TIMER_RANDOM_PARTS 4u
// Capabilities only, not for timer_start:
#define TIMER_PER_CPU 0x10u       // each CPU has its own, of the same rate
#define TIMER_POWER_OF_TWO 0x20u  // of ticks: other periods are rounded
#define TIMER_STOPS_IN_IDLE 0x40u // in idle states deeper than HLT
#define TIMER_TSC_DEADLINE 0x100u // a shot is set as a value of the TSC
#define TIMER_ABSENT 0x80u        // the machine has none and reports none

// The result of a probe of a timer that counts, but has not interrupted.
#define TIMER_SILENT "its interrupts do not arrive"

// Ranks.
enum {
    TIMER_RANK_PIT = 100,
    TIMER_RANK_RTC = 200,
    TIMER_RANK_HPET = 300,
    TIMER_RANK_LAPIC = 400,
};

// `tf` is the interrupted context. Interrupts are off. With TIMER_NMI in NMI
// context: no locks, no page faults, and only marked accesses to memory that
// other contexts write.
typedef void (*timer_fn_t)(void *arg, const struct trapframe *tf);

struct timer {
    const char *name;
    u32 rank; // the free timer of highest rank is taken
    u32 flags;
    u32 hz;                     // ticks a second
    u64 min_period, max_period; // nanoseconds, guaranteed by the driver
    u64 delay;  // ns, at most, until a random shot comes that was past when set
    u32 unit;   // for the driver: which of several alike
    u32 line;   // not 0: of timers with the same line only one can be reserved
    u32 vector; // of its interrupts, for code that observes them

    // With RANDOM: the number of shots that have come due at random distances
    // since boot. The boot CPU counts before it calls back, so the callback of
    // another CPU may read one too few. If the boot CPU is held up, it counts
    // the missed shots when it goes on: one for each whole period, their mean.
    struct counter shots;
    u32 seed; // of the distances, not 0: set by the user before the start

    // Completes the fields above. Called once, at start-up, on the boot CPU
    // with interrupts off. NULL: it can be used; else the reason.
    const char *(*probe)(struct timer *t);
    // Starts with a period (or a single shot) of `ticks`; its interrupts call
    // timer_fire from then on. `mode` has PERIODIC or ONESHOT, and ALL_CPUS,
    // NMI, RANDOM as in `flags`. May set `period` to the actual one. Interrupts
    // off; 0 or -errno. On the boot CPU; a PER_CPU device is started by each
    // CPU for itself.
    int (*start)(struct timer *t, u32 mode, u64 ticks);
    // Silences the device: an interrupt in flight may still arrive. Interrupts
    // off; on the boot CPU, a PER_CPU device on each.
    void (*stop)(struct timer *t);
    // Called on the boot CPU at each interrupt, for example to acknowledge it.
    // False: it was not the timer's. NMI-safe. May be NULL.
    bool (*serve)(struct timer *t);

    // For the registry:
    bool probed;
    const char *why_not; // NULL: it can be used
    const char *owner;   // NULL: free
    u32 mode;            // how it was started; 0: stopped
    bool stopping;
    u64 period; // in ticks, while it is started
    timer_fn_t fn;
    void *arg;
    struct nmi_owner nmi;
};
#define TIMER(t) LINKER_SET_ADD(timers, t)

// While a source's self-test looks at which CPUs the device interrupts: then
// the driver interrupts none on behalf of the device. Written by one thread.
extern bool timers_in_test;

// Finds the machine's timers. Once, on the boot CPU, interrupts off. Before
// that a timer can be reserved by name, if its probe needs no clock.
void timers_probe(void);

// Reserve for `owner` (a constant text, shown by system.clock): the timer with
// this name ("hpet" is the best free one of hpet0, hpet1, ...), or the best
// free one that has all `flags` and can do all periods from `min_ns` to
// `max_ns`. 0; -ENOENT (no such name), -ENODEV (it cannot be used; or none can
// do this), -EBUSY (reserved, or its interrupt line is). The event watch
// (eventwatch.h) releases its timer if interrupts are on. Thread context; at
// start-up any context.
int timer_reserve_name(const char *name, const char *owner, struct timer **out);
int timer_reserve(u32 flags, u64 min_ns, u64 max_ns, const char *owner,
                  struct timer **out);
// Frees a timer. If it runs it is stopped first, with timer_stop's
// requirements. Thread context; at start-up any context.
void timer_release(struct timer *t);

// Withdraws capabilities that a test has found not to work, of the timers with
// this name (as above). Thread context.
void timer_withdraw(const char *name, u32 flags);

// Starts a reserved timer: `mode` is TIMER_PERIODIC or TIMER_ONESHOT, with
// TIMER_ALL_CPUS or TIMER_NMI (which means all CPUs) if wanted, a periodic one
// with TIMER_RANDOM. A PER_CPU timer always runs on all CPUs. `period_ns` is
// the period, or the time to the shot; it is rounded to what the device can do.
// 0; -EINVAL (the timer cannot do this), -EBUSY (it runs, or the NMIs have
// another owner), or the device's error. Thread context with interrupts on; the
// callback may run before it returns.
int timer_start(struct timer *t, u32 mode, u64 period_ns, timer_fn_t fn,
                void *arg);
// Sets another shot of a one-shot timer: from its callback only, on the boot
// CPU (of a PER_CPU timer: for the own CPU). As timer_start otherwise; -EBUSY:
// it is being stopped. NMI-safe.
int timer_again(struct timer *t, u64 ns);
// On return no callback runs or will run, and the writes of the callbacks are
// visible. Thread context with interrupts on, not from the callback. Waits for
// all CPUs to take an interrupt.
void timer_stop(struct timer *t);

// The actual period while it is started: nanoseconds, rounded.
u64 timer_period_ns(const struct timer *t);

// Calls `fn` for each timer that the machine has, usable or not, by rank.
// Concurrent changes (owner, mode) may or may not be seen. Any context.
void timers_each(void (*fn)(const struct timer *t, void *arg), void *arg);
// The owner of the timer, or of one that shares its interrupt line; NULL: it is
// free, or its owner is the event watch, which gives way. The owner may
// have changed on return, unless timers_lock is held. Any context.
const char *timer_user(const struct timer *t);

// "periodic, one-shot, nmi; 10 us to 54 ms; for the clock's events", or why it
// cannot be used.
void timer_describe(const struct timer *t, char *text, size_t size);

// --- for drivers

// Called when the device has interrupted this CPU. Interrupts off; NMI-safe.
void timer_fire(struct timer *t, const struct trapframe *tf);
// The same as an interrupt handler (arch/irq.h), `arg` the timer.
void timer_interrupt(void *arg);
// Nanoseconds to ticks of `t`, the nearest; and back.
u64 timer_ticks(const struct timer *t, u64 ns);
u64 timer_ns(const struct timer *t, u64 ticks);

// --- for the clock's event code, which drives a one-shot device itself

// The timer has failed while it ran and is not used again; `why` is kept.
// Thread context.
void timer_give_up(struct timer *t, const char *why);

// `fn` is called at each interrupt from now on, permanently.
void timer_attach(struct timer *t, timer_fn_t fn);
