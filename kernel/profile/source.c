// Sample sources: choosing one for a session, starting and stopping it.
//
// A source runs while a session uses it, once for all sessions. A later session
// gets the rate that is running, and learns it from its info.
#include "kernel/base/cmdline.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/profile/session_private.h"
#include "lib/format.h"
#include "lib/string.h"

#define RATE_DEFAULT 1000
#define SOURCES_MAX 16
#define USES_MAX 32 // each instance of an event source counts

KERNEL_ARG(sampler, "sampler=NAME: the default sample source");

struct use {
    const struct sample_source *source;
    u32 users;
    struct sample_rate rate;
};
static struct use uses[USES_MAX]; // streams_lock; unused if it has no users

static const struct sample_source *find(const char *name)
{
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        if (!strcmp(name, (*s)->name))
            return *s;
    }
    return NULL;
}

// The entry of `source`; a free one if the source has no users.
static struct use *use_of(const struct sample_source *source)
{
    mutex_assert_held(&streams_lock);
    struct use *free = NULL;
    for (u32 i = 0; i < USES_MAX; i++) {
        if (!uses[i].users)
            free = &uses[i];
        else if (uses[i].source == source)
            return &uses[i];
    }
    assert(free);
    return free;
}

// The instance that counts this event, else an idle one; NULL: all count other
// events. A source that counts no events has one instance.
static const struct sample_source *counter_of(const struct sample_source *s,
                                              const char *event)
{
    const struct sample_source *idle = NULL;
    for (; s; s = s->next) {
        const struct use *use = use_of(s);
        if (use->users && (!s->counts || !strcmp(event, use->rate.event)))
            return s;
        if (!use->users && !idle)
            idle = s;
    }
    return idle;
}

static int start(const struct sample_source *s, struct sample_rate *rate)
{
    mutex_assert_held(&streams_lock);
    if (rate->period && !s->counts)
        return -EINVAL;
    if (!rate->hz)
        rate->hz = RATE_DEFAULT;
    cost_measure();
    if (!s->counts)
        rate->hz = MIN(rate->hz, cost_highest_hz(s));
    rate->hz = MAX(s->min_hz, MIN(rate->hz, s->max_hz));
    sample_start_throttle();
    return s->start(s, rate);
}

// Whether a session has no more use for the source than at fixed distances: a
// sample of each single event has no distance.
static bool is_fixed(const struct sample_rate *rate)
{
    return !rate->random && rate->period != 1;
}

// Shares the running instance, or starts one. *out: that instance.
static int acquire(const struct sample_source *s, struct sample_rate *rate,
                   const struct sample_source **out)
{
    mutex_assert_held(&streams_lock);
    struct sample_rate real = *rate;
    if (s->counts && !real.event[0])
        strlcpy(real.event, s->counts, sizeof(real.event));
    *out = counter_of(s, real.event);
    if (!*out)
        return -EBUSY;
    struct use *use = use_of(*out);
    if (!use->users) {
        int err = source_why_not(s) ? -ENODEV : start(*out, &real);
        if (err)
            return err;
        use->source = *out;
        use->rate = real;
    }
    use->users++;
    if (rate->no_fixed && is_fixed(&use->rate)) {
        source_release(*out);
        return -ERANGE;
    }
    *rate = use->rate;
    return 0;
}

// The source of highest rank below `limit`; one of rank 0 is never chosen.
static const struct sample_source *best_below(u32 limit)
{
    const struct sample_source *best = NULL;
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        if ((*s)->rank && (*s)->rank < limit &&
            (!best || (*s)->rank > best->rank))
            best = *s;
    }
    return best;
}

// Acquires the usable source of highest rank.
static int acquire_best(struct sample_rate *rate,
                        const struct sample_source **out)
{
    mutex_assert_held(&streams_lock);
    int err = -ENODEV;
    const struct sample_source *best = best_below(~0u);
    for (; err && best; best = best_below(best->rank))
        err = acquire(best, rate, out);
    return err;
}

static int acquire_named(const char *name, struct sample_rate *rate,
                         const struct sample_source **out)
{
    const struct sample_source *s = find(name);
    return s ? acquire(s, rate, out) : -ENODEV;
}

// Logged once; every session's info repeats it.
static void announce_fallback(const struct sample_source *wanted,
                              const struct sample_source *taken)
{
    static bool announced;
    if (announced)
        return;
    announced = true;
    const char *name = arg_sampler.value;
    if (wanted) {
        const char *why = source_why_not(wanted);
        log_printf("sampler=%s: %s; using %s\n", name, why ? why : "in use",
                   taken->name);
        return;
    }
    char names[SOURCES_MAX * SPROFILE_SOURCE_NAME] = "";
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        size_t used = strlen(names);
        format(names + used, sizeof(names) - used, " %s", (*s)->name);
    }
    log_printf("sampler=%s: no such source; using %s; available:%s\n", name,
               taken->name, names);
}

int source_acquire(const char *asked, struct sample_rate *rate,
                   const struct sample_source **out, const char **instead_of)
{
    mutex_assert_held(&streams_lock);
    *instead_of = "";
    if (asked[0])
        return acquire_named(asked, rate, out);
    if (!arg_sampler.present)
        return acquire_best(rate, out);
    if (!acquire_named(arg_sampler.value, rate, out))
        return 0;
    int err = acquire_best(rate, out);
    if (err)
        return err;
    *instead_of = arg_sampler.value;
    announce_fallback(find(arg_sampler.value), *out);
    return 0;
}

void source_release(const struct sample_source *source)
{
    mutex_assert_held(&streams_lock);
    struct use *use = use_of(source);
    if (!--use->users)
        source->stop(source);
}
