#include "shares.h"

#include <strobe/abi.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NORMAL_95 1.96 // standard deviations

enum source_masked source_masked(const char *source)
{
    if (strcmp(source, SPROFILE_POINT_SOURCE) == 0)
        return MASKED_UNKNOWN;
    if (strcmp(source, "nmi-ipi") == 0)
        return MASKED_BOOT_CPU;
    return strncmp(source, "nmi-", 4) == 0 || strcmp(source, "pmc") == 0
               ? MASKED_NOWHERE
               : MASKED_EVERYWHERE;
}

static int compare(const void *a, const void *b)
{
    const struct sample_count *x = *(struct sample_count *const *)a;
    const struct sample_count *y = *(struct sample_count *const *)b;

    if (x->cpu != y->cpu)
        return x->cpu < y->cpu ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->program != y->program)
        return x->program < y->program ? -1 : 1;
    if (x->mode != y->mode)
        return x->mode < y->mode ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool same_group(const struct sample_count *x,
                       const struct sample_count *y)
{
    return x->cpu == y->cpu && x->thread == y->thread &&
           x->program == y->program && x->mode == y->mode;
}

// Computes whole * part / all without overflow of whole * part.
static uint64_t part_of(uint64_t whole, uint64_t part, uint64_t all)
{
    return whole / all * part + whole % all * part / all;
}

static void divide(struct sample_count **list, uint32_t count)
{
    uint64_t samples = 0, period = 0, before = 0, assigned = 0;

    for (uint32_t i = 0; i < count; i++) {
        samples += list[i]->samples;
        period += list[i]->period;
    }
    for (uint32_t i = 0; i < count && samples > 0; i++) {
        struct sample_count *c = list[i];
        before += c->samples;
        c->period = part_of(period, before, samples) - assigned;
        assigned += c->period;
    }
}

static bool any_divided(const struct sprofile_info *info)
{
    return info->event[0] == '\0' && info->missed > 0 && info->throttled == 0;
}

static bool is_divided(const struct sample_count *c, uint32_t event, bool all)
{
    return c->event == event &&
           (all || c->mode == MODE_USER || c->mode == MODE_IDLE);
}

void shares_even(struct samples *s, uint32_t event,
                 const struct sprofile_info *info)
{
    bool all = source_masked(info->source) == MASKED_NOWHERE;
    if (!any_divided(info))
        return;
    struct sample_count **list = malloc((s->count + 1) * sizeof(*list));
    uint32_t n = 0;
    if (!list) // the shares are unbiased without it, but vary more
        return;
    for (uint32_t i = 0; i < s->count; i++) {
        if (is_divided(&s->counts[i], event, all))
            list[n++] = &s->counts[i];
    }
    qsort(list, n, sizeof(*list), compare);
    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && same_group(list[first], list[end]);
             end++)
            ;
        divide(list + first, end - first);
    }
    free(list);
}

int shares_divide(const struct samples *s, uint32_t event,
                  const struct sprofile_info *info, struct timed_sample *list,
                  size_t count)
{
    bool all = source_masked(info->source) == MASKED_NOWHERE;
    if (!any_divided(info))
        return 0;
    uint64_t *before = calloc(s->count + 1, sizeof(*before));
    if (!before)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (list[i].count == SAMPLES_UNCOUNTED)
            continue;
        const struct sample_count *c = &s->counts[list[i].count];
        if (!is_divided(c, event, all))
            continue;
        uint64_t n = before[list[i].count]++;
        list[i].period = part_of(c->period, n + 1, c->samples) -
                         part_of(c->period, n, c->samples);
    }
    free(before);
    return 0;
}

static struct shares add_up(const struct samples *s, uint32_t event,
                            uint32_t without)
{
    struct shares h = { 0 };
    double sum = 0, squares = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        const struct sample_count *c = &s->counts[i];
        if (c->event != event || c->mode == without)
            continue;
        h.samples += c->samples;
        sum += c->period;
        squares += c->squares;
    }
    h.effective = squares > 0 ? sum * sum / squares : 0;
    return h;
}

struct shares shares_of(const struct samples *s, uint32_t event)
{
    return add_up(s, event, MODE_IDLE);
}

// At fixed distances the CPUs' own timers, too, tick at the same moments.
static bool at_once(const struct sprofile_info *info)
{
    return info->event[0] == '\0' &&
           !(info->random && strcmp(info->source, "lapic") == 0);
}

static uint32_t together(const struct samples *s, uint32_t event,
                         const struct sprofile_info *info, uint32_t without)
{
    bool seen[STROBE_CPUS_MAX] = { false };
    const struct sample_count *first = NULL;
    uint32_t cpus = 0;
    bool several = false;

    for (uint32_t i = 0; i < s->count && at_once(info); i++) {
        const struct sample_count *c = &s->counts[i];
        if (c->event != event || c->mode == without ||
            c->cpu >= STROBE_CPUS_MAX)
            continue;
        first = first ? first : c;
        several |= c->thread != first->thread || c->mode == MODE_IDLE;
        cpus += !seen[c->cpu];
        seen[c->cpu] = true;
    }
    return several ? cpus : 1;
}

uint32_t shares_together(const struct samples *s, uint32_t event,
                         const struct sprofile_info *info)
{
    return together(s, event, info, MODE_IDLE);
}

double shares_independent(const struct samples *s, uint32_t event,
                          const struct sprofile_info *info)
{
    return add_up(s, event, MODES).effective / together(s, event, info, MODES);
}

double shares_points(const struct shares *h, double percent)
{
    double p = percent / 100;

    return h->effective > 0 ? 100 * NORMAL_95 * sqrt(p * (1 - p) / h->effective)
                            : 0;
}
