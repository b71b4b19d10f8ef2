// The hang watch. A CPU makes progress when its ledger's sequence counter `seq`
// changes, as it does at each interrupt, system call and context switch. A
// computing program does not change it, so the watcher sends that CPU an
// interrupt and checks again. A CPU is reported after HANG_CHECKS failed checks
// in a row: a virtual machine's host may stop all CPUs between two checks. Idle
// CPUs are not checked further.
//
// CPUs 0 and 1 each watch all other CPUs. So every CPU is watched, and on an
// idle machine the watch wakes only two. A watcher's data belong to its CPU,
// and are used only in the interrupts of its callouts. `reported` has the
// CPUs reported as hanging, so that each hang is reported once.

#include "kernel/sched/hang.h"

#include "kernel/base/errors.h"
#include "kernel/base/log.h"
#include "kernel/sched/runqueue.h"
#include "kernel/trace/point.h"
#include "lib/format.h"

#define WATCHERS 2u // CPUs 0 and 1
#define CHECK_NS (5 * NSEC_PER_SEC)
#define HANG_CHECKS 3u // checks; the first sends the interrupt, so 10 s
#define CONFIRM_SPINS 10000u
#define CONFIRM_NS (10 * NSEC_PER_MSEC)
#define HANG_SECONDS ((HANG_CHECKS - 1) * (u32)(CHECK_NS / NSEC_PER_SEC))

struct cpu_progress {
    u32 seq;
    u64 switches;
    u32 unresponsive; // checks in a row that found `seq` unchanged
    u32 stuck; // checks in a row that found threads waiting and no switch made
    bool due;  // a switch was due at the last check
};

static struct watcher {
    struct callout callout, confirm;
    struct cpu_progress of[CPU_MAX];
} watchers[WATCHERS];
static struct cpu_set reported; // atomic

ERROR_COUNTER(repeated, "reschedule interrupts, repeated",
              "a switch was due and did not happen, for up to 5 s");

static bool is_idle(const struct cpu *cpu)
{
    return READ_ONCE(cpu->ledger->open) == &cpu->ledger->idle;
}

static bool is_unresponsive(const struct cpu_progress *s, const struct cpu *cpu)
{
    return seqcount_peek(&cpu->ledger->seq) == s->seq && !is_idle(cpu);
}

// A queue lock that is never released counts as stuck, too.
static bool is_stuck(const struct cpu_progress *s, const struct cpu *cpu,
                     u64 *switches)
{
    struct run_queue *rq = cpu->rq;
    *switches = s->switches;
    if (!spin_try_lock(&rq->lock))
        return true;
    bool waits = rq->count;
    *switches = rq->switches;
    spin_unlock(&rq->lock);
    return waits && *switches == s->switches && !is_idle(cpu);
}

// QEMU with -icount runs CPUs in turns, so that this CPU can have starved the
// other one. Each PAUSE of the loop gives the other CPU a turn.
static bool still_hangs(const struct cpu_progress *s, struct cpu *cpu)
{
    u64 switches;
    bool hangs = true;
    smp_reschedule(cpu);
    for (u32 i = 0; hangs && i < CONFIRM_SPINS; i++) {
        cpu_relax();
        hangs = s->unresponsive ? is_unresponsive(s, cpu)
                                : is_stuck(s, cpu, &switches);
    }
    return hangs;
}

static void report_hang(struct cpu *cpu, const struct cpu_progress *s)
{
    if (cpu_set_add_atomic(&reported, cpu->id))
        return;
    char why[64];
    format(why, sizeof(why), "CPU %u hangs: for %u s it has %s", cpu->id,
           HANG_SECONDS,
           s->unresponsive ? "taken no interrupt"
                           : "not switched to a waiting thread");
    print_cpu_locations(why);
    trace_print_last_events();
}

// Detects a lost reschedule interrupt: that CPU halts or computes although a
// switch is due there. So the switch is due at both checks, and no switch was
// made between them. (Spinning here until it is made would delay this CPU's own
// switch, and the two watchers could wait for each other.)
static bool still_due(const struct cpu_progress *s, struct cpu *cpu)
{
    struct run_queue *rq = cpu->rq;
    if (!s->due || !READ_ONCE(cpu->need_resched) || !spin_try_lock(&rq->lock))
        return false; // the lock's holder is working on the queue
    bool due = rq->switches == s->switches;
    spin_unlock(&rq->lock);
    return due;
}

static void confirm(struct callout *c)
{
    struct watcher *w = container_of(c, struct watcher, confirm);
    for (u32 i = 0; i < cpu_count; i++) {
        if (still_due(&w->of[i], cpus[i])) {
            error_count(&repeated);
            smp_reschedule(cpus[i]);
        }
    }
}

static void check_cpu(struct cpu_progress *s, struct cpu *cpu)
{
    s->unresponsive = is_unresponsive(s, cpu) ? s->unresponsive + 1 : 0;
    s->seq = seqcount_peek(&cpu->ledger->seq);
    u64 switches;
    s->stuck = is_stuck(s, cpu, &switches) ? s->stuck + 1 : 0;
    s->switches = switches;
    s->due = false;
    if (s->unresponsive)
        smp_reschedule(cpu);
    else if (!callouts_repeat(cpu))
        s->due = READ_ONCE(cpu->need_resched);
    if (!s->unresponsive && !s->stuck && cpu_set_has(&reported, cpu->id))
        cpu_set_remove_atomic(&reported, cpu->id);
    else if ((s->unresponsive >= HANG_CHECKS || s->stuck >= HANG_CHECKS) &&
             still_hangs(s, cpu))
        report_hang(cpu, s);
}

static void check_cpus(struct callout *c)
{
    struct watcher *w = container_of(c, struct watcher, callout);
    bool due = false;
    for (u32 i = 0; i < cpu_count; i++) {
        if (i != this_cpu()->id) {
            check_cpu(&w->of[i], cpus[i]);
            due |= w->of[i].due;
        }
    }
    u64 now = clock_now_ns();
    if (due)
        callout_set(&w->confirm, now + CONFIRM_NS);
    callout_set(c, now + CHECK_NS);
}

void smp_call_unanswered(const struct cpu_set *silent, void (*fn)(void *arg),
                         u32 seconds)
{
    char why[96 + CPU_SET_LIST_SIZE], list[CPU_SET_LIST_SIZE];
    u32 offset = 0, address = (u32)fn;
    const char *name = ksym_lookup(address, &offset);
    format(why, sizeof(why), "CPU %u has asked CPU %s for %s for %u s",
           this_cpu()->id, cpu_set_list(silent, list, sizeof(list)),
           name ? name : "?", seconds);
    print_cpu_locations(why);
}

static void start_here(void *arg UNUSED)
{
    u32 id = this_cpu()->id;
    if (id >= WATCHERS)
        return;
    struct callout *c = &watchers[id].callout;
    callout_init(c, check_cpus, CALLOUT_INTERRUPT);
    callout_init(&watchers[id].confirm, confirm, CALLOUT_INTERRUPT);
    callout_set(c, clock_now_ns() + CHECK_NS);
}

void hang_watch_start(void)
{
    if (cpu_count > 1)
        smp_call_all(start_here, NULL);
}
