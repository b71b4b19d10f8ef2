#include "check.h"

#include "binomial.h"
#include "shares.h"

#include <math.h>

#define DEAR 0.05 // of the time: sampling that may change what is sampled

static const char *const names[] = { "user", "kernel", "idle" };

static const uint8_t part_of[MODES] = {
    [MODE_USER] = PART_USER,
    [MODE_KERNEL] = PART_KERNEL,
    [MODE_IRQ] = PART_KERNEL,
    [MODE_IDLE] = PART_IDLE,
};

static bool divide(double *parts)
{
    double sum = 0;

    for (uint32_t i = 0; i < CHECK_PARTS; i++)
        sum += parts[i];
    for (uint32_t i = 0; i < CHECK_PARTS && sum > 0; i++)
        parts[i] /= sum;
    return sum > 0;
}

static void add_samples(struct check *c, const struct samples *s,
                        uint32_t event)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct sample_count *n = &s->counts[i];
        if (n->event == event)
            c->sampled[part_of[n->mode]] += n->period;
    }
}

// Each part is judged alone, so the least of their probabilities is multiplied
// by their number (Bonferroni's inequality). Two parts are one question.
static double chance(const struct check *c, double samples)
{
    double least = 1;
    uint32_t parts = 0;

    for (uint32_t i = 0; i < CHECK_PARTS; i++) {
        least = fmin(least, binomial_chance(samples, samples * c->sampled[i],
                                            c->exact[i]));
        parts += c->exact[i] > 0;
    }
    return fmin(parts > 2 ? least * parts : least, 1);
}

bool check_make(struct check *c, const struct sprofile_info *info,
                const struct samples *s, uint32_t event)
{
    *c = (struct check){ .exact = { info->user_cycles,
                                    info->kernel_cycles + info->irq_cycles,
                                    info->idle_cycles } };
    if (info->event[0] != '\0' || info->lost > 0)
        return false;
    add_samples(c, s, event);
    if (c->exact[PART_IDLE] == 0) // idle threads are the kernel task's
        c->sampled[PART_IDLE] = 0;
    double independent = shares_independent(s, event, info);
    if (!divide(c->exact) || !divide(c->sampled) || independent < CHECK_LEAST)
        return false;
    c->p = chance(c, independent);
    return true;
}

// Prints what is known to let samples deviate, of what applies here.
static void print_reasons(FILE *out, const struct sprofile_info *info,
                          double cost)
{
    enum source_masked masked = source_masked(info->source);

    fputs("         The ledger is exact: believe it, not the samples. Reasons "
          "may be:\n",
          out);
    if (masked == MASKED_EVERYWHERE || masked == MASKED_BOOT_CPU)
        fputs("         - code with interrupts off is sampled where they are "
              "on again\n",
              out);
    if (!info->random)
        fputs("         - fixed distances, which may keep step with the "
              "program\n",
              out);
    if (cost > DEAR || info->throttled > 0)
        fputs("         - sampling, which takes so much time that it changes "
              "what is sampled\n",
              out);
    fputs("         - an emulator, which delays interrupts to the end of a "
          "block of code (QEMU\n           without --icount)\n",
          out);
}

void check_print(FILE *out, const struct sprofile_info *info,
                 const struct samples *s, uint32_t event, double cost)
{
    const char *before = "Check:   ";
    struct check c;

    if (!check_make(&c, info, s, event))
        return;
    for (uint32_t i = 0; i < CHECK_PARTS; i++) {
        if (c.sampled[i] == 0 && c.exact[i] == 0)
            continue;
        fprintf(out, "%s%s %.1f %% (ledger %.1f)", before, names[i],
                100 * c.sampled[i], 100 * c.exact[i]);
        before = ", ";
    }
    if (c.p >= CHECK_CHANCE) {
        fprintf(out, ": no more than chance (p = %.2g)\n", c.p);
        return;
    }
    fputs(": not by chance (p < 0.001)\n", out);
    print_reasons(out, info, cost);
}

void check_print_json(FILE *out, const struct sprofile_info *info,
                      const struct samples *s)
{
    struct check c;

    fputs("  \"check\": ", out);
    if (!check_make(&c, info, s, 0)) {
        fputs("null,\n", out);
        return;
    }
    fputc('{', out);
    for (uint32_t i = 0; i < CHECK_PARTS; i++)
        fprintf(out, "\"%s\": [%.6f, %.6f], ", names[i], c.sampled[i],
                c.exact[i]);
    fprintf(out, "\"p\": %.6g},\n", c.p);
}
