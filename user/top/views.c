// The six views: see views.h. A row's cells are in the order of the columns.
#include "views.h"

#include <string.h>
#include <strings.h>

#define HZ_PER_MHZ 1000000

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NUM(value)                 \
    {                              \
        .number = (int64_t)(value) \
    }
#define STR(value)      \
    {                   \
        .text = (value) \
    }
// Sets the cells of a row.
#define SET_ROW(row, ...)                                         \
    do {                                                          \
        const union cell cells[] = { __VA_ARGS__ };               \
        _Static_assert(COUNT(cells) <= VIEW_COLUMNS, "too many"); \
        memcpy((row)->cells, cells, sizeof(cells));               \
    } while (0)

void compare(const struct dataset *before, const struct dataset *now,
             struct comparison *out)
{
    out->before = before;
    out->now = now;
    summarize(before, now, &out->summary);
    out->tasks = task_sharing(&out->summary);
}

// ---- tasks

static const struct column task_columns[] = {
    { "ID", "id", COLUMN_ID, 5, 0, 'N' },
    { "Thr", "threads", COLUMN_NUMBER, 3, 0, 0 },
    { "S", "state", COLUMN_STATE, 1, 0, 0 },
    { "Parent", "parent", COLUMN_ID, 6, 4, 0 },
    { "Nice", "nice", COLUMN_NUMBER, 4, 3, 0 },
    { "Mem", "virtual", COLUMN_SIZE, 7, 0, 0 },
    { "Res", "resident", COLUMN_SIZE, 7, 2, 0 },
    { "%Mem", "memory", COLUMN_PERCENT, 6, 0, 'M' },
    { "%uCycles", "user", COLUMN_PERCENT, 8, 0, 0 },
    { "%kCycles", "kernel", COLUMN_PERCENT, 8, 0, 0 },
    { "%CPU", "cpu", COLUMN_PERCENT, 7, 0, 'P' },
    { "Faults/s", "faults", COLUMN_NUMBER, 8, 4, 0 },
    { "Time", "time", COLUMN_TIME, 9, 0, 'T' },
    { "Name", "name", COLUMN_TEXT, 8, 0, 0 },
};

static size_t count_tasks(const struct dataset *d)
{
    return d->task_count;
}

static void fill_task(struct comparison *c, size_t i, struct row *row)
{
    static const struct sysinfo_task nothing;
    const struct sysinfo_task *t = &c->now->tasks[i];
    const struct sysinfo_task *old = dataset_task(c->before, t);
    struct sharing memory = { .whole = c->now->memory.total,
                              .units = PERCENT_ALL };

    if (!old)
        old = &nothing;
    uint64_t used_user = grown(old->user, t->user);
    uint64_t used_kernel = grown(old->kernel, t->kernel);
    uint32_t user = share(&c->tasks, used_user);
    uint32_t kernel = share(&c->tasks, used_kernel);

    row->id = row->task = t->id;
    row->active = used_user + used_kernel > 0;
    SET_ROW(
        row, NUM(t->id), NUM(t->threads), NUM(t->state), NUM(t->parent),
        NUM(t->nice), NUM(t->virtual), NUM(t->resident),
        NUM(share(&memory, t->resident)), NUM(user), NUM(kernel),
        NUM(user + kernel),
        NUM(per_second(grown(old->faults, t->faults), c->summary.elapsed_ns)),
        NUM(t->user + t->kernel), STR(t->name));
}

// ---- threads

static const struct column thread_columns[] = {
    { "ID", "id", COLUMN_ID, 5, 0, 'N' },
    { "Task", "task", COLUMN_ID, 5, 0, 0 },
    { "S", "state", COLUMN_STATE, 1, 0, 0 },
    { "On", "on_cpu", COLUMN_ID, 3, 0, 0 },
    { "Pri", "priority", COLUMN_NUMBER, 3, 0, 0 },
    { "%uCycl", "user", COLUMN_PERCENT, 6, 0, 0 },
    { "%kCycl", "kernel", COLUMN_PERCENT, 6, 0, 0 },
    { "%CPU", "cpu", COLUMN_PERCENT, 6, 0, 'P' },
    { "%Ready", "ready", COLUMN_PERCENT, 6, 1, 0 },
    { "Switch/s", "switches", COLUMN_NUMBER, 8, 0, 0 },
    { "Forced/s", "forced", COLUMN_NUMBER, 8, 1, 0 },
    { "Time", "time", COLUMN_TIME, 8, 0, 'T' },
    { "Name", "name", COLUMN_TEXT, 9, 0, 0 },
    { "Waits for", "wait_on", COLUMN_TEXT, 6, 0, 0 },
};

static size_t count_threads(const struct dataset *d)
{
    return d->thread_count;
}

// Limits the percentage to that of one CPU: the data of threads and CPUs are
// read at different times.
static uint32_t one_cpu(const struct comparison *c, uint64_t cycles)
{
    uint32_t percent = cpu_percent(&c->summary, cycles);

    return percent < PERCENT_ALL ? percent : PERCENT_ALL;
}

static void fill_thread(struct comparison *c, size_t i, struct row *row)
{
    static const struct sysinfo_thread nothing;
    const struct sysinfo_thread *t = &c->now->threads[i];
    const struct sysinfo_thread *old = dataset_thread(c->before, t);
    uint64_t ns = c->summary.elapsed_ns;

    if (!old)
        old = &nothing;
    uint64_t user = grown(old->user, t->user);
    uint64_t kernel = grown(old->kernel, t->kernel);
    uint64_t forced = grown(old->forced, t->forced);
    uint64_t switches = grown(old->voluntary, t->voluntary) + forced;
    uint64_t ready = grown(old->ready, t->ready);
    struct sharing wait = { .whole = ns, .units = PERCENT_ALL };

    row->id = t->id;
    row->task = t->task;
    row->active = user + kernel > 0 || t->state == SYSINFO_RUNNING;
    SET_ROW(row, NUM(t->id), NUM(t->task), NUM(t->state), NUM(t->cpu),
            NUM(t->priority), NUM(one_cpu(c, user)), NUM(one_cpu(c, kernel)),
            NUM(one_cpu(c, user + kernel)),
            NUM(share(&wait, ready < ns ? ready : ns)),
            NUM(per_second(switches, ns)), NUM(per_second(forced, ns)),
            NUM(t->user + t->kernel), STR(t->name), STR(t->wait_on));
}

// ---- messages between tasks

static const struct column ipc_columns[] = {
    { "ID", "id", COLUMN_ID, 5, 0, 'N' },
    { "Call sent", "call_sent", COLUMN_NUMBER, 9, 0, 0 },
    { "Call recv", "call_received", COLUMN_NUMBER, 9, 0, 0 },
    { "Answ sent", "answer_sent", COLUMN_NUMBER, 9, 0, 0 },
    { "Answ recv", "answer_received", COLUMN_NUMBER, 9, 0, 0 },
    { "IRQ notif", "irq_notif_received", COLUMN_NUMBER, 9, 0, 0 },
    { "Forward", "forwarded", COLUMN_NUMBER, 7, 0, 0 },
    { "Per s", "rate", COLUMN_NUMBER, 7, 0, 'P' },
    { "Name", "name", COLUMN_TEXT, 8, 0, 0 },
};

static uint64_t messages(const struct sysinfo_task *t)
{
    return t->call_sent + t->call_received + t->answer_sent +
           t->answer_received + t->irq_notif_received + t->forwarded;
}

static void fill_ipc(struct comparison *c, size_t i, struct row *row)
{
    const struct sysinfo_task *t = &c->now->tasks[i];
    const struct sysinfo_task *old = dataset_task(c->before, t);
    uint64_t fresh = grown(old != NULL ? messages(old) : 0, messages(t));

    row->id = row->task = t->id;
    row->active = fresh > 0;
    SET_ROW(row, NUM(t->id), NUM(t->call_sent), NUM(t->call_received),
            NUM(t->answer_sent), NUM(t->answer_received),
            NUM(t->irq_notif_received), NUM(t->forwarded),
            NUM(per_second(fresh, c->summary.elapsed_ns)), STR(t->name));
}

// ---- exceptions and interrupts

static const struct column exception_columns[] = {
    { "Vec", "vector", COLUMN_ID, 3, 0, 'N' },
    { "Hot", "hot", COLUMN_FLAG, 3, 0, 0 },
    { "Count", "count", COLUMN_NUMBER, 10, 0, 0 },
    { "Per s", "rate", COLUMN_NUMBER, 8, 0, 0 },
    { "%Cycles", "cpu", COLUMN_PERCENT, 7, 0, 'P' },
    { "Time", "time", COLUMN_TIME, 9, 0, 'T' },
    { "From", "controller", COLUMN_TEXT, 11, 0, 0 },
    { "Description", "description", COLUMN_TEXT, 12, 0, 0 },
};

static size_t count_exceptions(const struct dataset *d)
{
    return d->exception_count;
}

static void fill_exception(struct comparison *c, size_t i, struct row *row)
{
    static const struct sysinfo_exception nothing;
    const struct sysinfo_exception *e = &c->now->exceptions[i];
    const struct sysinfo_exception *old =
        dataset_exception(c->before, e->vector);

    if (!old)
        old = &nothing;
    uint64_t count = grown(old->count, e->count);
    uint64_t cycles = grown(old->cycles, e->cycles);

    row->id = e->vector;
    row->task = SYSINFO_ALL;
    row->active = count > 0;
    SET_ROW(row, NUM(e->vector), NUM(e->hot), NUM(e->count),
            NUM(per_second(count, c->summary.elapsed_ns)),
            NUM(cpu_percent(&c->summary, cycles)), NUM(e->cycles),
            STR(e->controller), STR(e->description));
}

// ---- system calls

static const struct column syscall_columns[] = {
    { "Num", "number", COLUMN_ID, 4, 0, 'N' },
    { "Calls", "count", COLUMN_NUMBER, 10, 0, 0 },
    { "Per s", "rate", COLUMN_NUMBER, 8, 0, 0 },
    { "Errors", "errors", COLUMN_NUMBER, 8, 0, 0 },
    { "%Cycles", "cpu", COLUMN_PERCENT, 7, 0, 'P' },
    { "Cyc/call", "cost", COLUMN_NUMBER, 10, 0, 0 },
    { "Time", "time", COLUMN_TIME, 9, 0, 'T' },
    { "Name", "name", COLUMN_TEXT, 12, 0, 0 },
};

static size_t count_syscalls(const struct dataset *d)
{
    return d->syscall_count;
}

static void fill_syscall(struct comparison *c, size_t i, struct row *row)
{
    static const struct sysinfo_syscall nothing;
    const struct sysinfo_syscall *s = &c->now->syscalls[i];
    const struct sysinfo_syscall *old = dataset_syscall(c->before, s->number);

    if (!old)
        old = &nothing;
    uint64_t count = grown(old->count, s->count);
    uint64_t cycles = grown(old->cycles, s->cycles);

    row->id = s->number;
    row->task = SYSINFO_ALL;
    row->active = count > 0;
    SET_ROW(row, NUM(s->number), NUM(s->count),
            NUM(per_second(count, c->summary.elapsed_ns)), NUM(s->errors),
            NUM(cpu_percent(&c->summary, cycles)),
            NUM(count > 0 ? cycles / count : 0), NUM(s->cycles), STR(s->name));
}

// ---- CPUs

static const struct column cpu_columns[] = {
    { "CPU", "id", COLUMN_ID, 3, 0, 'N' },
    { "MHz", "mhz", COLUMN_NUMBER, 5, 1, 0 },
    { "%busy", "busy", COLUMN_PERCENT, 6, 0, 'P' },
    { "%idle", "idle", COLUMN_PERCENT, 6, 0, 0 },
    { "%user", "user", COLUMN_PERCENT, 6, 0, 0 },
    { "%kern", "kernel", COLUMN_PERCENT, 6, 0, 0 },
    { "%irq", "irq", COLUMN_PERCENT, 6, 0, 0 },
    { "busy ms", "busy_ms", COLUMN_MS, 8, 1, 'T' },
    { "idle ms", "idle_ms", COLUMN_MS, 8, 0, 0 },
    { "user ms", "user_ms", COLUMN_MS, 8, 0, 0 },
    { "kern ms", "kernel_ms", COLUMN_MS, 8, 0, 0 },
    { "irq ms", "irq_ms", COLUMN_MS, 8, 0, 0 },
    { "Switch/s", "switches", COLUMN_NUMBER, 8, 1, 0 },
};

static size_t count_cpus(const struct dataset *d)
{
    return d->cpu_count;
}

static void fill_cpu(struct comparison *c, size_t i, struct row *row)
{
    const struct sysinfo_cpu *cpu = &c->now->cpus[i];
    struct cpu_use u;

    cpu_use(dataset_cpu(c->before, cpu->id), cpu, c->summary.elapsed_ns, &u);
    row->id = cpu->id;
    row->task = SYSINFO_ALL;
    row->active = u.busy > 0;
    SET_ROW(row, NUM(u.id), NUM(u.frequency / HZ_PER_MHZ), NUM(u.busy),
            NUM(u.idle), NUM(u.user), NUM(u.kernel), NUM(u.irq),
            NUM(u.busy_total), NUM(u.idle_total), NUM(u.user_total),
            NUM(u.kernel_total), NUM(u.irq_total), NUM(u.switches_per_second));
}

// ---- list of views

#define VIEW(key, name, meaning, table, sort, count, fill)         \
    {                                                              \
        key, name, meaning, table, COUNT(table), sort, count, fill \
    }

const struct view views[] = {
    VIEW('t', "tasks", "tasks", task_columns, 10, count_tasks, fill_task),
    VIEW('H', "threads", "threads", thread_columns, 7, count_threads,
         fill_thread),
    VIEW('i', "ipc", "messages between tasks", ipc_columns, 7, count_tasks,
         fill_ipc),
    VIEW('e', "exceptions", "exceptions and interrupts", exception_columns, 4,
         count_exceptions, fill_exception),
    VIEW('s', "syscalls", "system calls", syscall_columns, 4, count_syscalls,
         fill_syscall),
    VIEW('1', "cpus", "CPUs", cpu_columns, 0, count_cpus, fill_cpu),
};
const unsigned view_count = COUNT(views);

const struct view *view_by_key(char key)
{
    for (unsigned i = 0; i < view_count; i++) {
        if (views[i].key == key)
            return &views[i];
    }
    return NULL;
}

const struct view *view_by_name(const char *name)
{
    for (unsigned i = 0; i < view_count; i++) {
        if (strcasecmp(views[i].name, name) == 0)
            return &views[i];
    }
    return NULL;
}

int view_column_by_letter(const struct view *v, char letter)
{
    for (unsigned i = 0; i < v->column_count; i++) {
        if (v->columns[i].letter == letter)
            return i;
    }
    return -1;
}

int view_column_by_name(const struct view *v, const char *name)
{
    for (unsigned i = 0; i < v->column_count; i++) {
        if (strcasecmp(v->columns[i].name, name) == 0 ||
            strcasecmp(v->columns[i].title, name) == 0)
            return i;
    }
    return -1;
}
