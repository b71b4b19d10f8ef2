// The self-test of the sample sources, at start-up: a source is offered once
// its interrupts have arrived on every CPU, by the route that it uses.
//
// Firmware tables and registers do not say whether they will. v86's I/O APIC
// accepts an entry for NMIs and delivers none, so the source of the highest
// rank took no sample at all.
//
// Each source runs for one or two periods, without a session. The CPUs halt
// meanwhile, except that a source of events needs code that runs. Sources
// driven by the clock's events need no test: callouts work, or nothing would.
//
// `failures` is written before the first program starts, under streams_lock.
#include "arch/clock.h"
#include "arch/cpu.h"
#include "arch/irq.h"
#include "arch/regs.h"
#include "kernel/base/log.h"
#include "kernel/profile/session_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/waitq.h"
#include "kernel/time/timer.h"

#define SOURCES_MAX 16
// A slow CPU, such as an emulated one of 4 million instructions a second, takes
// longer for an interrupt than the period of the highest rates.
#define RATE_HZ 2048u
#define STEP_NS (NSEC_PER_SEC / RATE_HZ)
// The first interrupt, anywhere. A host may stop this machine meanwhile, so a
// step counts as one however long it took; or one CPU, so each step waits until
// all CPUs have taken an interrupt: NMIs sent before have been delivered then.
#define STEPS_TO_FIRST 100u
#define STEPS_TO_ALL 4000u // on all CPUs, once there was one
#define SPINS_OF_EVENTS 100u

#define SILENT "its interrupts do not arrive (self-test)"
#define SILENT_SOMEWHERE "its interrupts do not reach all CPUs (self-test)"

static struct {
    const struct sample_source *source;
    const char *why;
} failures[SOURCES_MAX];
static u32 failure_count;

const char *source_why_not(const struct sample_source *s)
{
    for (u32 i = 0; i < failure_count; i++) {
        if (failures[i].source == s)
            return failures[i].why;
    }
    return s->why_not(s);
}

// The CPUs on which a source's interrupts are expected: nmi-ipi sends NMIs to
// the others, and of a source of events only this one is sure to run.
static bool is_expected_on(const struct sample_source *s, u32 cpu)
{
    if (s->counts)
        return cpu == this_cpu()->id;
    return !s->sends || cpu != 0;
}

// How many of the CPUs have taken an interrupt since `before`.
static void count_cpus(const struct sample_source *s, u32 vector,
                       const u64 *before, u32 *expected, u32 *reached)
{
    *expected = *reached = 0;
    for (u32 i = 0; i < cpu_count; i++) {
        if (!is_expected_on(s, i))
            continue;
        ++*expected;
        *reached += irq_count(i, vector) != before[i];
    }
}

static void wait_a_step(const struct sample_source *s)
{
    for (u32 i = 0; s->counts && i < SPINS_OF_EVENTS; i++)
        cpu_relax();
    if (!s->counts)
        thread_sleep_until(clock_now_ns() + STEP_NS, WAIT_UNINTERRUPTIBLE);
    smp_quiesce_others();
}

static const char *await_interrupts(const struct sample_source *s, u32 vector,
                                    const u64 *before)
{
    u32 expected, reached;
    for (u32 i = 0; i < STEPS_TO_ALL; i++) {
        count_cpus(s, vector, before, &expected, &reached);
        if (reached == expected)
            return NULL;
        if (!reached && i >= STEPS_TO_FIRST)
            return SILENT;
        wait_a_step(s);
    }
    return SILENT_SOMEWHERE;
}

static void fail(const struct sample_source *s, const char *why)
{
    assert(failure_count < SOURCES_MAX);
    failures[failure_count].source = s;
    failures[failure_count].why = why;
    failure_count++;
    log_printf("profile: the source %s is not used: %s\n", s->name, why);
    if (s->timer && s->nmi)
        timer_withdraw(s->timer, TIMER_NMI);
    else if (s->timer)
        timer_withdraw(s->timer, TIMER_ALL_CPUS);
}

// Of a source that has been started.
static const char *await_and_stop(const struct sample_source *s)
{
    u64 before[CPU_MAX];
    u32 vector = s->vector(s);
    for (u32 i = 0; i < cpu_count; i++)
        before[i] = irq_count(i, vector);
    const char *why = await_interrupts(s, vector, before);
    s->stop(s);
    return why;
}

const char *source_test(const struct sample_source *s)
{
    u32 hz = MIN(RATE_HZ, s->max_hz);
    struct sample_rate rate = { .hz = hz, .random = true }; // the default
    mutex_assert_held(&streams_lock);
    if (!s->vector || s->why_not(s))
        return NULL;
    WRITE_ONCE(timers_in_test, true);
    const char *why = s->start(s, &rate) ? NULL : await_and_stop(s);
    WRITE_ONCE(timers_in_test, false);
    return why;
}

void sources_test(void)
{
    mutex_lock(&streams_lock);
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        const char *why = source_test(*s);
        if (why)
            fail(*s, why);
    }
    mutex_unlock(&streams_lock);
}
