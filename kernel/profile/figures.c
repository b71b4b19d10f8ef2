// What the sessions tell the sysinfo tree: each of them, and the sums of all
// that there are and ever were.
//
// A session that is found in its slot under sessions_lock stays: it leaves the
// slot, and its counts go to those of the ended, under the same lock.

#include "arch/cpu.h"
#include "arch/nmi.h"
#include "kernel/base/log.h"
#include "kernel/base/providers.h"
#include "kernel/profile/session_private.h"
#include "kernel/task/task.h"
#include "lib/string.h"

// sessions_lock.
static u64 begun;
static struct sprofile_info ended; // the counts of those that have ended

void figures_begun(void)
{
    mutex_assert_held(&sessions_lock);
    begun++;
}

void figures_ended(const struct session *s)
{
    mutex_assert_held(&sessions_lock);
    assert(!slots[s->slot]);
    session_counts(s, &ended);
}

static const char *state_of(const struct session *s)
{
    if (READ_ONCE(s->ended))
        return "over";
    if (s->wait_exec)
        return "for exec";
    return s->paused ? "paused" : "taking";
}

static void fill(const struct session *s, struct sysinfo_session *out)
{
    mutex_assert_held(&sessions_lock);
    struct sprofile_info counts = { 0 };

    session_counts(s, &counts);
    *out = (struct sysinfo_session){
        .id = s->slot,
        .owner = s->owner,
        .target = s->task ? s->task->id : SYSINFO_ALL,
        .targets = READ_ONCE(s->live),
        .rate = s->rate.hz,
        .taken = counts.taken,
        .lost = counts.lost,
        .missed = counts.missed,
        .throttled = counts.throttled,
        .others = counts.others,
        .cycles = counts.cycles,
        .elapsed = session_elapsed_ns(s),
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
    mutex_lock(&sessions_lock);
    costs_divide();
    for (u32 i = 0; i < SESSIONS_MAX; i++) {
        struct sysinfo_session record;
        if (!slots[i])
            continue;
        fill(slots[i], &record);
        fn(&record, arg);
    }
    mutex_unlock(&sessions_lock);
}

void session_totals(struct sysinfo_sampling *out)
{
    mutex_lock(&sessions_lock);
    costs_divide();
    struct sprofile_info sum = ended;
    *out = (struct sysinfo_sampling){ .most = SESSIONS_MAX, .begun = begun };
    for (u32 i = 0; i < SESSIONS_MAX; i++) {
        if (!slots[i])
            continue;
        out->sessions++;
        session_counts(slots[i], &sum);
    }
    mutex_unlock(&sessions_lock);
    out->taken = sum.taken;
    out->lost = sum.lost;
    out->missed = sum.missed;
    out->throttled = sum.throttled;
    out->others = sum.others;
    out->cycles = sum.cycles;
    for (u32 i = 0; i < cpu_count; i++)
        out->nmis_unclaimed += nmi_unclaimed(i);
}
