// sched/pmc, with counters that the test makes: each event has what was counted
// on its CPU since the one before, and is of the thread that has left. Where
// the machine has no counters, a trace that wants them is refused.
#include "tests/kernel/test.h"
#include "tests/kernel/thread_helpers.h"

#include "arch/cpu.h"
#include "arch/pmu.h"
#include "kernel/base/errno.h"
#include "kernel/profile/trace_pmc.h"
#include "kernel/profile/trace_private.h"
#include "kernel/sync/mutex.h"
#include "lib/string.h"

#define SLEEPERS 4u
#define POINTS (1u << TRACE_sched_switch | 1u << TRACE_sched_pmc)

static struct waitq readers = WAITQ_INIT(readers, "test");

// The TSC since the begin, and the number of readings.
static u64 began, read_last[CPU_MAX][TRACE_COUNTERS];
static u32 begun;

static int begin_made(const struct pmu_event events[TRACE_COUNTERS])
{
    expect(events[0].id == PMU_CYCLES && events[1].id == PMU_RAW);
    memset(read_last, 0, sizeof(read_last));
    began = rdtsc();
    begun++;
    return 0;
}

static void end_made(void)
{
    begun--;
}

static void read_made(u64 counts[TRACE_COUNTERS])
{
    u64 *here = read_last[this_cpu()->id];
    here[0] = rdtsc() - began;
    here[1]++;
    memcpy(counts, here, 2 * sizeof(*counts));
}

static const struct trace_counters made = { begin_made, end_made, read_made };

static int begin(const char *first, const char *second, struct stream **out)
{
    struct trace_options o = { .size = sizeof(o),
                               .points = POINTS,
                               .ring_bytes = 64u << 10 };
    strlcpy(o.counters[0], first, sizeof(o.counters[0]));
    strlcpy(o.counters[1], second, sizeof(o.counters[1]));
    return trace_session_begin_with(&o, NULL, &readers, out);
}

static void sleep_often(void *arg UNUSED)
{
    for (u32 i = 0; i < 5; i++)
        sleep_ms(1);
    report_done();
}

struct found {
    u32 left; // by the last switch; UINT32_MAX: no switch since the last event
    u32 events;
    u64 first, second;
};

static void take(struct found *f, const u32 *record)
{
    const void *fields = record + 1;
    const struct trace_sched_switch *s = fields;
    const struct trace_sched_pmc *p = fields;
    u32 type = TRACE_HEAD_TYPE(*record);
    if (type == TRACE_sched_switch) {
        expect(f->left == UINT32_MAX);
        f->left = s->prev;
    } else if (type == TRACE_sched_pmc) {
        expect(f->left == p->thread && p->second == 1 && p->first);
        f->left = UINT32_MAX;
        f->events++;
        f->first += p->first;
        f->second += p->second;
    }
}

static struct found read_ring(struct trace_ring *r)
{
    struct found f = { .left = UINT32_MAX };
    u32 bytes;
    for (;;) {
        const u8 *from = trace_ring_peek(r, PAGE_SIZE, &bytes);
        if (!bytes)
            return f;
        for (u32 at = 0; at < bytes;) {
            const u32 *record = (const u32 *)(from + at);
            take(&f, record);
            at += TRACE_HEAD_WORDS(*record) * 4;
        }
        trace_ring_consume(r, bytes);
    }
}

KERNEL_TEST(trace_counts_between_switches)
{
    const struct trace_counters *was = trace_counters;
    struct stream *s, *other;
    u32 events = 0;
    trace_counters = &made;
    expect(!begin("cycles", "r1234", &s));
    expect(begin("cycles", "r1234", &other) == -EBUSY);
    reset();
    for (u32 i = 0; i < SLEEPERS; i++)
        start(sleep_often, NULL);
    wait_for(SLEEPERS);
    struct trace_session *t = container_of(s, struct trace_session, stream);
    stream_pause(s, true);
    for (u32 i = 0; i < cpu_count; i++) {
        struct found f = read_ring(&t->target.cpu[i].ring);
        expect(!trace_ring_lost(&t->target.cpu[i].ring));
        // After the pause there are further readings, without events.
        expect(f.first <= read_last[i][0] && f.second <= read_last[i][1]);
        expect(f.left == UINT32_MAX && f.second == f.events);
        events += f.events;
    }
    expect(events >= SLEEPERS * 5);
    s->kind->end(s);
    expect(!begun);
    expect(begin("cycles", "no-such-event", &s) == -ENOENT && !begun);
    expect(!begin("cycles", "r1234", &s) && begun == 1);
    s->kind->end(s);
    expect(!begun);
    trace_counters = was;
}

KERNEL_TEST(trace_counters_are_refused)
{
    struct stream *s;
    if (!pmu_why_not()) {
        test_skip("this machine has performance counters");
        return;
    }
    expect(begin("cycles", "instructions", &s) == -ENODEV);
    expect(begin("cycles", "instructions", &s) == -ENODEV); // it is free again
}
