#include "check.h"

#include "binomial.h"
#include "shares.h"

#include "user/libstrobe/strobe.h"

#include <math.h>
#include <string.h>

#define ROUNDING 1e-12 // of a sum of shares
#define DEAR 0.05      // of the time: sampling that may change what is sampled

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

// A session of a task has no idle time: idle threads are the kernel task's.
static bool is_checked(const struct check *c, const struct sample_count *n,
                       uint32_t event)
{
    return n->event == event &&
           (n->mode != MODE_IDLE || c->exact[PART_IDLE] > 0);
}

static void add_samples(struct check *c, const struct samples *s,
                        uint32_t event)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct sample_count *n = &s->counts[i];
        uint32_t part = part_of[n->mode];
        if (!is_checked(c, n, event))
            continue;
        c->sampled[part] += n->period;
        c->squares[part] += n->squares;
        c->all.sum += n->period;
        c->all.squares += n->squares;
        if (n->cpu < STROBE_CPUS_MAX)
            c->on_cpu[n->cpu] += n->period;
    }
    for (uint32_t i = 0; i < STROBE_CPUS_MAX && c->all.sum > 0; i++)
        c->on_cpu[i] /= c->all.sum;
}

// --- the chance of a share --------------------------------------------------

static double mean_weight(double sum, double squares, const struct weight *all)
{
    return sum > 0 ? squares / sum : all->squares / all->sum;
}

// The share is a ratio of two sums of weights. Where its samples, or the
// others, weigh more than on average, all are as good as fewer: of the exact
// share their weights are expected, not of the share that they have.
static double effective(const struct weight *all, double sampled,
                        double squares, double exact, double samples)
{
    double own = mean_weight(sampled * all->sum, squares, all);
    double others =
        mean_weight((1 - sampled) * all->sum, all->squares - squares, all);
    double weight = (1 - exact) * own + exact * others;

    return samples * fmin(all->squares / all->sum / weight, 1);
}

// `squares`: the sum of its samples' squared weights.
static double chance_of_share(const struct check *c, double sampled,
                              double squares, double exact, double samples)
{
    double n = effective(&c->all, sampled, squares, exact, samples);

    return sampled == exact ? 1 : binomial_chance(n, n * sampled, exact);
}

// --- by CPU -----------------------------------------------------------------

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

// --- by task ----------------------------------------------------------------

// Adds a cell, or replaces the one with the smallest share if that is smaller.
static void add_cell(struct check *c, const struct check_cell *cell)
{
    struct check_cell *at = c->cells;

    if (c->cell_count < CHECK_CELLS) {
        c->cells[c->cell_count++] = *cell;
        return;
    }
    for (uint32_t i = 1; i < CHECK_CELLS; i++) {
        if (c->cells[i].least < at->least)
            at = &c->cells[i];
    }
    if (at->least < cell->least)
        *at = *cell;
}

// Adds what no cell has: the other tasks. Returns false if there is less than
// nothing, so that the times are not of this session.
static bool add_others(struct check *c, const double *exact)
{
    double left[] = { exact[PART_USER], exact[PART_KERNEL] };
    const uint32_t cells = c->cell_count;

    for (uint32_t i = 0; i < cells; i++)
        left[c->cells[i].part] -= c->cells[i].least;
    for (uint32_t part = 0; part < 2; part++)
        c->cells[c->cell_count++] = (struct check_cell){
            .task = CHECK_OTHERS,
            .part = part,
            .least = left[part] > ROUNDING ? left[part] : 0,
        };
    return fmin(left[0], left[1]) > -CHECK_CHANCE;
}

// Chooses the cells, whatever the samples are, from exact shares: `irq` is that
// of interrupts, which is not in `exact`.
static bool choose_cells(struct check *c, const struct samples *s,
                         uint32_t event, double all, const double *exact,
                         double irq, double samples)
{
    uint32_t tasks = 0;

    for (uint32_t i = 0; i < s->times.count; i++) {
        const struct task_time *t = &s->times.list[i];
        double share[] = { t->user / all, t->kernel / all };
        if (t->event != event || !t->known)
            continue;
        tasks += share[0] + share[1] > 0;
        for (uint32_t part = 0; part < 2; part++) {
            if (samples * share[part] >= CHECK_CELL_LEAST)
                add_cell(c, &(struct check_cell){ .task = t->task,
                                                  .part = part,
                                                  .least = share[part] });
        }
    }
    // The cells of the only task of a session are the parts.
    bool several = tasks > 1 || irq + c->exact[PART_IDLE] > 0;
    if (c->cell_count == 0 || !several || !add_others(c, exact))
        return false;
    for (uint32_t i = 0; i < c->cell_count; i++)
        c->cells[i].most = fmin(
            c->cells[i].least + (c->cells[i].part == PART_KERNEL ? irq : 0), 1);
    return true;
}

static struct check_cell *cell_of(struct check *c, uint32_t task, uint32_t part)
{
    uint32_t i = 0;

    while (i < c->cell_count - 2 &&
           (c->cells[i].task != task || c->cells[i].part != part))
        i++;
    return i < c->cell_count - 2 ? &c->cells[i]
                                 : &c->cells[c->cell_count - 2 + part];
}

static void fill_cells(struct check *c, const struct samples *s, uint32_t event)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct sample_count *n = &s->counts[i];
        uint32_t part = part_of[n->mode];
        if (!is_checked(c, n, event) || part == PART_IDLE)
            continue;
        // An interrupt belongs to no task.
        struct check_cell *cell =
            cell_of(c, n->mode == MODE_IRQ ? CHECK_OTHERS : n->task, part);
        cell->sampled += n->period / c->all.sum;
        cell->squares += n->squares;
    }
}

// Returns the lowest probability of the cells.
static double chance_of_cells(struct check *c, double samples)
{
    double worst = 1;

    for (uint32_t i = 0; i < c->cell_count; i++) {
        struct check_cell *cell = &c->cells[i];
        double exact = fmax(cell->least, fmin(cell->sampled, cell->most));
        cell->p =
            chance_of_share(c, cell->sampled, cell->squares, exact, samples);
        if (cell->p < worst) {
            worst = cell->p;
            c->worst_cell = i;
        }
    }
    return worst;
}

static double chance_of_tasks(struct check *c, const struct sprofile_info *info,
                              const struct samples *s, uint32_t event,
                              double samples)
{
    double all = (double)info->user_cycles + info->kernel_cycles +
                 info->irq_cycles + info->idle_cycles;
    double exact[] = { info->user_cycles / all, info->kernel_cycles / all };

    if (info->times_lost > 0 || s->times.incomplete ||
        !choose_cells(c, s, event, all, exact, info->irq_cycles / all,
                      samples)) {
        c->cell_count = 0;
        return 1;
    }
    fill_cells(c, s, event);
    return chance_of_cells(c, samples);
}

// --- all --------------------------------------------------------------------

// A number of parts that sum up to all: two are one question.
static uint32_t questions(uint32_t parts)
{
    return parts > 2 ? parts : parts / 2;
}

// Each part, CPU and task is judged alone, so the least of their probabilities
// is multiplied by their number (Bonferroni's inequality).
static double chance(struct check *c, double of_tasks, double samples)
{
    double least = fmin(of_tasks, chance_of_cpus(c, samples));
    uint32_t parts = 0;

    for (uint32_t i = 0; i < CHECK_PARTS; i++) {
        least = fmin(least, chance_of_share(c, c->sampled[i], c->squares[i],
                                            c->exact[i], samples));
        parts += c->exact[i] > 0;
    }
    uint32_t all = questions(parts) + questions(c->cpus) + c->cell_count;
    return fmin(least * fmax(all, 1), 1);
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
    double independent = shares_independent(s, event, info);
    if (!divide(c->exact) || !divide(c->sampled) || independent < CHECK_LEAST)
        return false;
    c->p =
        chance(c, chance_of_tasks(c, info, s, event, independent), independent);
    return true;
}

static const char *task_name(const struct samples *s, uint32_t task)
{
    const struct program *p = programs_find(&s->programs, task, UINT64_MAX);

    return programs_name(&s->programs, programs_index(&s->programs, p));
}

// The task that leans most.
static void print_cell(FILE *out, const struct check_cell *cell,
                       const struct samples *s)
{
    fputs("         ", out);
    if (cell->task == CHECK_OTHERS)
        fputs("All other tasks have", out);
    else {
        put_printable(out, task_name(s, cell->task));
        fprintf(out, " (task %u) has", cell->task);
    }
    fprintf(out, " %.1f %% of the samples in %s (ledger %.1f",
            100 * cell->sampled,
            cell->part == PART_USER ? "user mode" : "the kernel",
            100 * cell->least);
    if (cell->most > cell->least)
        fprintf(out, " to %.1f", 100 * cell->most);
    fputs(")\n", out);
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
    if (c.cell_count > 0 && c.cells[c.worst_cell].p < CHECK_CHANCE)
        print_cell(out, &c.cells[c.worst_cell], s);
    print_reasons(out, info, cost);
}

static void print_cells_json(FILE *out, const struct check *c,
                             const struct samples *s)
{
    fputs("\"tasks\": [", out);
    for (uint32_t i = 0; i < c->cell_count; i++) {
        const struct check_cell *cell = &c->cells[i];
        fputs(i > 0 ? ",\n    {\"task\": " : "\n    {\"task\": ", out);
        if (cell->task == CHECK_OTHERS)
            fputs("null", out);
        else {
            const char *name = task_name(s, cell->task);
            fprintf(out, "%u, \"name\": ", cell->task);
            json_string(out, name, strlen(name));
        }
        fprintf(out, ", \"%s\": %.6f, \"ledger\": [%.6f, %.6f], \"p\": %.6g}",
                names[cell->part], cell->sampled, cell->least, cell->most,
                cell->p);
    }
    fputs("], ", out);
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
    if (c.cell_count > 0)
        print_cells_json(out, &c, s);
    fprintf(out, "\"p\": %.6g},\n", c.p);
}
