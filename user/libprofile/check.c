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
    double sum = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        const struct sample_count *n = &s->counts[i];
        if (n->event != event)
            continue;
        c->sampled[part_of[n->mode]] += n->period;
        sum += n->period;
        if (n->cpu < STROBE_CPUS_MAX)
            c->on_cpu[n->cpu] += n->period;
    }
    for (uint32_t i = 0; i < STROBE_CPUS_MAX && sum > 0; i++)
        c->on_cpu[i] /= sum;
}

// Sets the bounds of a CPU's share. (A session of a task has no idle time, and
// no time in interrupts.)
static void bound_cpus(struct check *c, const struct sprofile_info *info)
{
    double one = (double)info->elapsed_ns * info->tsc_hz / 1e9;
    double error = one * info->clock.tsc_error_ppm / 1e6;
    double outside_tasks = (double)info->irq_cycles + info->idle_cycles;
    double all = outside_tasks + info->user_cycles + info->kernel_cycles;
    double unsampled = (one + error) * info->cpus - all;

    if (one == 0 || outside_tasks == 0 || unsampled < 0 || info->cpus < 2 ||
        info->cpus > STROBE_CPUS_MAX)
        return;
    c->cpus = info->cpus;
    c->least = fmax(one - error - unsampled, 0) / all;
    c->most = fmin((one + error) / all, 1);
}

// Returns the lowest probability of the CPUs.
static double chance_of_cpus(struct check *c, double samples)
{
    c->worst_p = 1;
    for (uint32_t i = 0; i < c->cpus; i++) {
        double share = c->on_cpu[i];
        double exact = fmax(c->least, fmin(share, c->most));
        double p = share == exact
                       ? 1
                       : binomial_chance(samples, samples * share, exact);
        if (p < c->worst_p) {
            c->worst_p = p;
            c->worst = i;
        }
    }
    return c->worst_p;
}

// A number of parts that sum up to all: two are one question.
static uint32_t questions(uint32_t parts)
{
    return parts > 2 ? parts : parts / 2;
}

// Each part and CPU is judged alone, so the least of their probabilities is
// multiplied by their number (Bonferroni's inequality).
static double chance(struct check *c, double samples)
{
    double least = chance_of_cpus(c, samples);
    uint32_t parts = 0;

    for (uint32_t i = 0; i < CHECK_PARTS; i++) {
        least = fmin(least, binomial_chance(samples, samples * c->sampled[i],
                                            c->exact[i]));
        parts += c->exact[i] > 0;
    }
    return fmin(least * fmax(questions(parts) + questions(c->cpus), 1), 1);
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
    bound_cpus(c, info);
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
    if (c.worst_p < CHECK_CHANCE)
        fprintf(out,
                "         CPU %u has %.1f %% of the samples (ledger %.1f to "
                "%.1f)\n",
                c.worst, 100 * c.on_cpu[c.worst], 100 * c.least, 100 * c.most);
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
    if (c.cpus > 0)
        fprintf(out, "\"cpu_bounds\": [%.6f, %.6f], \"cpus\": ", c.least,
                c.most);
    for (uint32_t i = 0; i < c.cpus; i++)
        fprintf(out, "%c%.6f%s", i > 0 ? ' ' : '[', c.on_cpu[i],
                i + 1 < c.cpus ? "," : "], ");
    fprintf(out, "\"p\": %.6g},\n", c.p);
}
