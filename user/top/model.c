// Differences of data sets: see model.h.
#include "model.h"

#include <stdlib.h>

#define NS_PER_SECOND 1000000000ull

// ---- finding

// Compares records by the id that they all begin with.
static int by_first(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void order(void *records, size_t count, size_t size)
{
    if (count > 0)
        qsort(records, count, size, by_first);
}

void dataset_sort(struct dataset *d)
{
    order(d->cpus, d->cpu_count, sizeof(*d->cpus));
    order(d->tasks, d->task_count, sizeof(*d->tasks));
    order(d->threads, d->thread_count, sizeof(*d->threads));
    order(d->exceptions, d->exception_count, sizeof(*d->exceptions));
    order(d->syscalls, d->syscall_count, sizeof(*d->syscalls));
}

static const void *find(uint32_t id, const void *records, size_t count,
                        size_t size)
{
    return count > 0 ? bsearch(&id, records, count, size, by_first) : NULL;
}

const struct sysinfo_cpu *dataset_cpu(const struct dataset *d, uint32_t id)
{
    return find(id, d->cpus, d->cpu_count, sizeof(*d->cpus));
}

const struct sysinfo_task *dataset_task(const struct dataset *d,
                                        const struct sysinfo_task *same)
{
    const struct sysinfo_task *t =
        find(same->id, d->tasks, d->task_count, sizeof(*d->tasks));

    return t != NULL && t->started == same->started ? t : NULL;
}

const struct sysinfo_thread *dataset_thread(const struct dataset *d,
                                            const struct sysinfo_thread *same)
{
    const struct sysinfo_thread *t =
        find(same->id, d->threads, d->thread_count, sizeof(*d->threads));

    return t != NULL && t->started == same->started ? t : NULL;
}

const struct sysinfo_exception *dataset_exception(const struct dataset *d,
                                                  uint32_t vector)
{
    return find(vector, d->exceptions, d->exception_count,
                sizeof(*d->exceptions));
}

const struct sysinfo_syscall *dataset_syscall(const struct dataset *d,
                                              uint32_t number)
{
    return find(number, d->syscalls, d->syscall_count, sizeof(*d->syscalls));
}

// ---- numbers

uint64_t grown(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

uint32_t share(struct sharing *s, uint64_t part)
{
    s->sum += part;
    if (s->whole == 0)
        return 0;
    double due = (double)s->sum / s->whole * s->units + 0.5;
    uint32_t given = (uint32_t)grown(s->given, (uint64_t)due);
    s->given += given;
    return given;
}

uint64_t per_second(uint64_t count, uint64_t elapsed_ns)
{
    return (uint64_t)((double)count * NS_PER_SECOND / elapsed_ns + 0.5);
}

uint32_t cpu_percent(const struct summary *s, uint64_t cycles)
{
    if (s->capacity == 0)
        return 0;
    return (uint32_t)((double)cycles * s->cpus * PERCENT_ALL / s->capacity +
                      0.5);
}

struct sharing task_sharing(const struct summary *s)
{
    return (struct sharing){ .whole = s->counted,
                             .units = s->busy_percent - s->ended_percent };
}

// ---- CPUs

void cpu_use(const struct sysinfo_cpu *before, const struct sysinfo_cpu *now,
             uint64_t elapsed_ns, struct cpu_use *out)
{
    static const struct sysinfo_cpu nothing;
    const struct sysinfo_cpu *old = before != NULL ? before : &nothing;
    uint64_t user = grown(old->user, now->user);
    uint64_t kernel =
        grown(old->kernel + old->start_up, now->kernel + now->start_up);
    uint64_t irq = grown(old->irq, now->irq);
    uint64_t idle = grown(old->idle, now->idle);
    struct sharing s = { .whole = user + kernel + irq + idle,
                         .units = PERCENT_ALL };

    *out = (struct cpu_use){
        .id = now->id,
        .frequency = now->frequency,
        .switches_per_second =
            per_second(grown(old->switches, now->switches), elapsed_ns),
        .busy_total = now->busy,
        .idle_total = now->idle,
        .user_total = now->user,
        .kernel_total = now->kernel + now->start_up,
        .irq_total = now->irq,
    };
    out->user = share(&s, user);
    out->kernel = share(&s, kernel);
    out->irq = share(&s, irq);
    out->idle = PERCENT_ALL - out->user - out->kernel - out->irq;
    out->busy = PERCENT_ALL - out->idle;
}

static void add_cpu(struct sysinfo_cpu *sum, const struct sysinfo_cpu *c)
{
    sum->elapsed += c->elapsed;
    sum->busy += c->busy;
    sum->idle += c->idle;
    sum->user += c->user;
    sum->kernel += c->kernel;
    sum->irq += c->irq;
    sum->start_up += c->start_up;
    sum->switches += c->switches;
}

static struct sysinfo_cpu add_cpus(const struct dataset *d)
{
    struct sysinfo_cpu sum = { .id = SYSINFO_ALL };

    for (size_t i = 0; i < d->cpu_count; i++) {
        add_cpu(&sum, &d->cpus[i]);
        sum.frequency = d->cpus[i].frequency;
    }
    return sum;
}

static void summarize_cpus(const struct dataset *before,
                           const struct dataset *now, struct summary *out)
{
    struct sysinfo_cpu old = add_cpus(before), sum = add_cpus(now);

    for (size_t i = 0; i < now->cpu_count; i++) {
        const struct sysinfo_cpu *c = &now->cpus[i];
        struct cpu_use use;
        cpu_use(dataset_cpu(before, c->id), c, out->elapsed_ns, &use);
        out->busy_percent += use.user + use.kernel;
    }
    out->hz = sum.frequency;
    out->cpus = now->cpu_count;
    out->busy = grown(old.user + old.kernel + old.start_up,
                      sum.user + sum.kernel + sum.start_up);
    out->capacity =
        out->busy + grown(old.irq, sum.irq) + grown(old.idle, sum.idle);
    cpu_use(&old, &sum, out->elapsed_ns, &out->all);
}

// ---- tasks and threads

static void summarize_tasks(const struct dataset *before,
                            const struct dataset *now, struct summary *out)
{
    uint32_t fresh = 0, left = 0;

    for (size_t i = 0; i < now->task_count; i++) {
        const struct sysinfo_task *t = &now->tasks[i];
        const struct sysinfo_task *old = dataset_task(before, t);
        out->counted += grown(old != NULL ? old->user : 0, t->user) +
                        grown(old != NULL ? old->kernel : 0, t->kernel);
        fresh += !old;
    }
    for (size_t i = 0; i < before->task_count; i++)
        left += !dataset_task(now, &before->tasks[i]);

    out->tasks = now->task_count;
    out->created = (uint32_t)grown(before->totals.tasks_created,
                                   now->totals.tasks_created);
    // The counter and the list were read at different times.
    out->created = out->created > fresh ? out->created : fresh;
    out->short_lived = out->created - fresh;
    out->ended = left + out->short_lived;
    if (out->ended > 0) {
        out->ended_cycles = grown(out->counted, out->busy);
        struct sharing s = { .whole = out->busy, .units = out->busy_percent };
        out->ended_percent = share(&s, out->ended_cycles);
    }
}

static void summarize_threads(const struct dataset *now, struct summary *out)
{
    uint32_t *const by_state[] = {
        [SYSINFO_RUNNING] = &out->running,   [SYSINFO_READY] = &out->ready,
        [SYSINFO_SLEEPING] = &out->sleeping, [SYSINFO_WAITING] = &out->sleeping,
        [SYSINFO_STOPPED] = &out->other,     [SYSINFO_DEAD] = &out->lingering,
        [SYSINFO_ZOMBIE] = &out->lingering,
    };

    out->threads = now->thread_count;
    for (size_t i = 0; i < now->thread_count; i++) {
        uint32_t state = now->threads[i].state;
        if (state < sizeof(by_state) / sizeof(by_state[0]))
            ++*by_state[state];
        else
            out->other++;
    }
}

static uint64_t nanoseconds(const struct sysinfo_uptime *t)
{
    return t->seconds * NS_PER_SECOND + t->nanoseconds;
}

void summarize(const struct dataset *before, const struct dataset *now,
               struct summary *out)
{
    *out = (struct summary){ 0 };
    out->elapsed_ns =
        grown(nanoseconds(&before->uptime), nanoseconds(&now->uptime));
    if (out->elapsed_ns == 0)
        out->elapsed_ns = 1;
    summarize_cpus(before, now, out);
    summarize_tasks(before, now, out);
    summarize_threads(now, out);
}
