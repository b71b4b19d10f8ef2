// Sessions in the sysinfo tree: each current session, and sums over all current
// and ended ones.
//
// A session found in its slot under streams_lock stays there while the lock is
// held. It leaves the slot, and its counters are added to `ended`, under the
// same lock.

#include "arch/cpu.h"
#include "arch/nmi.h"
#include "kernel/base/log.h"
#include "kernel/base/providers.h"
#include "kernel/profile/session_private.h"
#include "kernel/task/task.h"
#include "lib/string.h"

// Guarded by streams_lock.
static u64 begun;
static struct sprofile_info ended; // counters of ended sessions

void report_begun(void)
{
    mutex_assert_held(&streams_lock);
    begun++;
}

void report_ended(const struct session *s)
{
    mutex_assert_held(&streams_lock);
    assert(streams[s->stream.slot] != &s->stream);
    session_counts(s, &ended);
}

static const char *state_of(const struct session *s)
{
    if (READ_ONCE(s->stream.ended))
        return "over";
    if (s->stream.wait_exec)
        return "for exec";
    return s->stream.paused ? "paused" : "taking";
}

static void fill(const struct session *s, struct sysinfo_session *out)
{
    mutex_assert_held(&streams_lock);
    struct sprofile_info counts = { 0 };

    session_counts(s, &counts);
    *out = (struct sysinfo_session){
        .id = s->stream.slot,
        .owner = s->stream.owner,
        .target = s->stream.task ? s->stream.task->id : SYSINFO_ALL,
        .targets = READ_ONCE(s->stream.live),
        .rate = s->rate.hz,
        .taken = counts.taken,
        .lost = counts.lost,
        .missed = counts.missed,
        .throttled = counts.throttled,
        .in_sampling = counts.in_sampling,
        .others = counts.others,
        .cycles = counts.cycles,
        .interrupts = counts.interrupts,
        .elapsed = stream_elapsed_ns(&s->stream),
    };
    strlcpy(out->state, state_of(s), sizeof(out->state));
    strlcpy(out->source, s->source->name, sizeof(out->source));
    for (u32 i = 0; i < cpu_count; i++) {
        out->used += ring_fill(&s->cpu[i].ring);
        out->room += s->cpu[i].ring.size;
    }
}

void sessions_each(void (*fn)(const struct sysinfo_session *, void *),
                   void *arg)
{
    mutex_lock(&streams_lock);
    costs_divide();
    for (u32 i = 0; i < STREAMS_MAX; i++) {
        struct sysinfo_session record;
        const struct session *s = session_in(i);
        if (!s)
            continue;
        fill(s, &record);
        fn(&record, arg);
    }
    mutex_unlock(&streams_lock);
}

void session_totals(struct sysinfo_sampling *out)
{
    mutex_lock(&streams_lock);
    costs_divide();
    struct sprofile_info sum = ended;
    *out = (struct sysinfo_sampling){ .most = SESSIONS_MAX, .begun = begun };
    FOR_EACH_SESSION(s)
    {
        out->sessions++;
        session_counts(s, &sum);
    }
    mutex_unlock(&streams_lock);
    out->taken = sum.taken;
    out->lost = sum.lost;
    out->missed = sum.missed;
    out->throttled = sum.throttled;
    out->in_sampling = sum.in_sampling;
    out->others = sum.others;
    out->cycles = sum.cycles;
    for (u32 i = 0; i < cpu_count; i++)
        out->nmis_unclaimed += nmi_unclaimed(i);
}
