// The sample sources: which one a session gets, and when it runs.
//
// A source runs while a session uses it, once for all of them: a later session
// gets the rate that is running, and learns it from its info.
#include "kernel/errno.h"
#include "kernel/init/cmdline.h"
#include "kernel/init/log.h"
#include "kernel/profile/session_private.h"
#include "lib/string.h"

#define RATE_DEFAULT 1000
#define SOURCES_MAX 16

KERNEL_ARG(sampler, "sampler=NAME: the default sample source");

struct use {
    u32 users;
    struct sample_rate rate;
};
static struct use uses[SOURCES_MAX]; // sessions_lock; in the set's order

static const struct sample_source *find(const char *name)
{
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        if (!strcmp(name, (*s)->name))
            return *s;
    }
    return NULL;
}

static struct use *use_of(const struct sample_source *source)
{
    u32 i = 0;
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        if (*s == source)
            break;
        i++;
    }
    assert(i < SOURCES_MAX);
    return &uses[i];
}

static int start(const struct sample_source *s, struct sample_rate *rate)
{
    mutex_assert_held(&sessions_lock);
    if (rate->period && !s->counts)
        return -EINVAL;
    if (!rate->hz)
        rate->hz = RATE_DEFAULT;
    rate->hz = MAX(s->min_hz, MIN(rate->hz, s->max_hz));
    sample_start_throttle();
    return s->start(s, rate);
}

// Takes part in what runs, or starts it.
static int acquire(const struct sample_source *s, struct sample_rate *rate)
{
    mutex_assert_held(&sessions_lock);
    struct use *use = use_of(s);
    if (!use->users) {
        struct sample_rate real = *rate;
        int err = s->why_not(s) ? -ENODEV : start(s, &real);
        if (err)
            return err;
        use->rate = real;
    } else if (s->counts && strcmp(rate->event, use->rate.event)) {
        return -EBUSY; // it counts one event at a time
    }
    use->users++;
    *rate = use->rate;
    return 0;
}

// The best of those that rank below `limit`.
static const struct sample_source *best_below(u32 limit)
{
    const struct sample_source *best = NULL;
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        if ((*s)->rank < limit && (!best || (*s)->rank > best->rank))
            best = *s;
    }
    return best;
}

// By rank, the first that can be had.
static int acquire_best(struct sample_rate *rate,
                        const struct sample_source **out)
{
    mutex_assert_held(&sessions_lock);
    int err = -ENODEV;
    for (u32 limit = ~0u; err; limit = (*out)->rank) {
        *out = best_below(limit);
        if (!*out)
            break;
        err = acquire(*out, rate);
    }
    return err;
}

int source_acquire(const char *asked, struct sample_rate *rate,
                   const struct sample_source **out)
{
    mutex_assert_held(&sessions_lock);
    bool by_argument = !asked[0] && arg_sampler.present;
    if (asked[0] || by_argument) {
        const char *name = asked[0] ? asked : arg_sampler.value;
        *out = find(name);
        int err = *out ? acquire(*out, rate) : -ENODEV;
        if (!err || !by_argument)
            return err;
        const char *why = *out ? (*out)->why_not(*out) : "no such source";
        log_printf("sampler=%s: %s; taking the best that there is\n", name,
                   why ? why : "in use");
    }
    return acquire_best(rate, out);
}

void source_release(const struct sample_source *source)
{
    mutex_assert_held(&sessions_lock);
    struct use *use = use_of(source);
    if (!--use->users)
        source->stop(source);
}
