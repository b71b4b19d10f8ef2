// The six views: see views.h.
#include "views.h"

#include <string.h>
#include <strings.h>

#define HZ_PER_MHZ 1000000

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
// A view's columns are one list: COLUMN(title, name, kind, width, rank, letter,
// value), the members of struct column and the value of its cell, an expression
// over the local variables of the function that fills a row.
#define COLUMN(title, name, kind, width, rank, letter, value) \
    { title, name, kind, width, rank, letter },
#define CELL(title, name, kind, width, rank, letter, value) \
    __builtin_choose_expr((kind) == COLUMN_TEXT, text_cell, number_cell)(value),
#define SET_ROW(row, COLUMNS)                                     \
    do {                                                          \
        const union cell cells[] = { COLUMNS(CELL) };             \
        _Static_assert(COUNT(cells) <= VIEW_COLUMNS, "too many"); \
        memcpy((row)->cells, cells, sizeof(cells));               \
    } while (0)

static union cell number_cell(int64_t number)
{
    return (union cell){ .number = number };
}

static union cell text_cell(const char *text)
{
    return (union cell){ .text = text };
}

void compare(const struct dataset *before, const struct dataset *now,
             struct comparison *out)
{
    out->before = before;
    out->now = now;
    summarize(before, now, &out->summary);
    out->tasks = task_sharing(&out->summary);
}

// ---- tasks

#define TASK_COLUMNS(C)                                                 \
    C("ID", "id", COLUMN_ID, 5, 0, 'N', t->id)                          \
    C("Thr", "threads", COLUMN_NUMBER, 3, 0, 0, t->threads)             \
    C("S", "state", COLUMN_STATE, 1, 0, 0, t->state)                    \
    C("Parent", "parent", COLUMN_ID, 6, 4, 0, t->parent)                \
    C("Nice", "nice", COLUMN_NUMBER, 4, 3, 0, t->nice)                  \
    C("Mem", "virtual", COLUMN_SIZE, 7, 0, 0, t->virtual)               \
    C("Res", "resident", COLUMN_SIZE, 7, 2, 0, t->resident)             \
    C("%Mem", "memory", COLUMN_PERCENT, 6, 0, 'M',                      \
      share(&memory, t->resident))                                      \
    C("%uCycles", "user", COLUMN_PERCENT, 8, 0, 0, user)                \
    C("%kCycles", "kernel", COLUMN_PERCENT, 8, 0, 0, kernel)            \
    C("%CPU", "cpu", COLUMN_PERCENT, 7, 0, 'P', user + kernel)          \
    C("Faults/s", "faults", COLUMN_NUMBER, 8, 4, 0,                     \
      per_second(grown(old->faults, t->faults), c->summary.elapsed_ns)) \
    C("Time", "time", COLUMN_TIME, 9, 0, 'T', t->user + t->kernel)      \
    C("Name", "name", COLUMN_TEXT, 8, 0, 0, t->name)

static const struct column task_columns[] = { TASK_COLUMNS(COLUMN) };

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
    SET_ROW(row, TASK_COLUMNS);
}

// ---- threads

#define THREAD_COLUMNS(C)                                                   \
    C("ID", "id", COLUMN_ID, 5, 0, 'N', t->id)                              \
    C("Task", "task", COLUMN_ID, 5, 0, 0, t->task)                          \
    C("S", "state", COLUMN_STATE, 1, 0, 0, t->state)                        \
    C("On", "on_cpu", COLUMN_ID, 3, 0, 0, t->cpu)                           \
    C("Pri", "priority", COLUMN_NUMBER, 3, 0, 0, t->priority)               \
    C("%uCycl", "user", COLUMN_PERCENT, 6, 0, 0, one_cpu(c, user))          \
    C("%kCycl", "kernel", COLUMN_PERCENT, 6, 0, 0, one_cpu(c, kernel))      \
    C("%CPU", "cpu", COLUMN_PERCENT, 6, 0, 'P', one_cpu(c, user + kernel))  \
    C("%Ready", "ready", COLUMN_PERCENT, 6, 1, 0,                           \
      share(&wait, ready < ns ? ready : ns))                                \
    C("Switch/s", "switches", COLUMN_NUMBER, 8, 0, 0,                       \
      per_second(switches, ns))                                             \
    C("Forced/s", "forced", COLUMN_NUMBER, 8, 1, 0, per_second(forced, ns)) \
    C("Time", "time", COLUMN_TIME, 8, 0, 'T', t->user + t->kernel)          \
    C("Name", "name", COLUMN_TEXT, 9, 0, 0, t->name)                        \
    C("Waits for", "wait_on", COLUMN_TEXT, 6, 0, 0, t->wait_on)

static const struct column thread_columns[] = { THREAD_COLUMNS(COLUMN) };

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
    SET_ROW(row, THREAD_COLUMNS);
}

// ---- messages between tasks

#define IPC_COLUMNS(C)                                                        \
    C("ID", "id", COLUMN_ID, 5, 0, 'N', t->id)                                \
    C("Call sent", "call_sent", COLUMN_NUMBER, 9, 0, 0, t->call_sent)         \
    C("Call recv", "call_received", COLUMN_NUMBER, 9, 0, 0, t->call_received) \
    C("Answ sent", "answer_sent", COLUMN_NUMBER, 9, 0, 0, t->answer_sent)     \
    C("Answ recv", "answer_received", COLUMN_NUMBER, 9, 0, 0,                 \
      t->answer_received)                                                     \
    C("IRQ notif", "irq_notif_received", COLUMN_NUMBER, 9, 0, 0,              \
      t->irq_notif_received)                                                  \
    C("Forward", "forwarded", COLUMN_NUMBER, 7, 0, 0, t->forwarded)           \
    C("Per s", "rate", COLUMN_NUMBER, 7, 0, 'P',                              \
      per_second(fresh, c->summary.elapsed_ns))                               \
    C("Name", "name", COLUMN_TEXT, 8, 0, 0, t->name)

static const struct column ipc_columns[] = { IPC_COLUMNS(COLUMN) };

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
    SET_ROW(row, IPC_COLUMNS);
}

// ---- exceptions and interrupts

#define EXCEPTION_COLUMNS(C)                                          \
    C("Vec", "vector", COLUMN_ID, 3, 0, 'N', e->vector)               \
    C("Hot", "hot", COLUMN_FLAG, 3, 0, 0, e->hot)                     \
    C("Count", "count", COLUMN_NUMBER, 10, 0, 0, e->count)            \
    C("Per s", "rate", COLUMN_NUMBER, 8, 0, 0, per_second(count, ns)) \
    C("%Cycles", "cpu", COLUMN_PERCENT, 7, 0, 'P',                    \
      cpu_percent(&c->summary, cycles))                               \
    C("Time", "time", COLUMN_TIME, 9, 0, 'T', e->cycles)              \
    C("From", "controller", COLUMN_TEXT, 11, 0, 0, e->controller)     \
    C("Description", "description", COLUMN_TEXT, 12, 0, 0, e->description)

static const struct column exception_columns[] = { EXCEPTION_COLUMNS(COLUMN) };

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
    uint64_t ns = c->summary.elapsed_ns;
    uint64_t count = grown(old->count, e->count);
    uint64_t cycles = grown(old->cycles, e->cycles);

    row->id = e->vector;
    row->task = SYSINFO_ALL;
    row->active = count > 0;
    SET_ROW(row, EXCEPTION_COLUMNS);
}

// ---- system calls

#define SYSCALL_COLUMNS(C)                                            \
    C("Num", "number", COLUMN_ID, 4, 0, 'N', s->number)               \
    C("Calls", "count", COLUMN_NUMBER, 10, 0, 0, s->count)            \
    C("Per s", "rate", COLUMN_NUMBER, 8, 0, 0, per_second(count, ns)) \
    C("Errors", "errors", COLUMN_NUMBER, 8, 0, 0, s->errors)          \
    C("%Cycles", "cpu", COLUMN_PERCENT, 7, 0, 'P',                    \
      cpu_percent(&c->summary, cycles))                               \
    C("Cyc/call", "cost", COLUMN_NUMBER, 10, 0, 0,                    \
      count > 0 ? cycles / count : 0)                                 \
    C("Time", "time", COLUMN_TIME, 9, 0, 'T', s->cycles)              \
    C("Name", "name", COLUMN_TEXT, 12, 0, 0, s->name)

static const struct column syscall_columns[] = { SYSCALL_COLUMNS(COLUMN) };

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
    uint64_t ns = c->summary.elapsed_ns;
    uint64_t count = grown(old->count, s->count);
    uint64_t cycles = grown(old->cycles, s->cycles);

    row->id = s->number;
    row->task = SYSINFO_ALL;
    row->active = count > 0;
    SET_ROW(row, SYSCALL_COLUMNS);
}

// ---- CPUs

#define CPU_COLUMNS(C)                                                \
    C("CPU", "id", COLUMN_ID, 3, 0, 'N', u.id)                        \
    C("MHz", "mhz", COLUMN_NUMBER, 5, 1, 0, u.frequency / HZ_PER_MHZ) \
    C("%busy", "busy", COLUMN_PERCENT, 6, 0, 'P', u.busy)             \
    C("%idle", "idle", COLUMN_PERCENT, 6, 0, 0, u.idle)               \
    C("%user", "user", COLUMN_PERCENT, 6, 0, 0, u.user)               \
    C("%kern", "kernel", COLUMN_PERCENT, 6, 0, 0, u.kernel)           \
    C("%irq", "irq", COLUMN_PERCENT, 6, 0, 0, u.irq)                  \
    C("busy ms", "busy_ms", COLUMN_MS, 8, 1, 'T', u.busy_total)       \
    C("idle ms", "idle_ms", COLUMN_MS, 8, 0, 0, u.idle_total)         \
    C("user ms", "user_ms", COLUMN_MS, 8, 0, 0, u.user_total)         \
    C("kern ms", "kernel_ms", COLUMN_MS, 8, 0, 0, u.kernel_total)     \
    C("irq ms", "irq_ms", COLUMN_MS, 8, 0, 0, u.irq_total)            \
    C("Switch/s", "switches", COLUMN_NUMBER, 8, 1, 0, u.switches_per_second)

static const struct column cpu_columns[] = { CPU_COLUMNS(COLUMN) };

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
    SET_ROW(row, CPU_COLUMNS);
}

// ---- list of views

#define VIEW(key, name, meaning, table, sort, count, fill)         \
    {                                                              \
        key, name, meaning, table, COUNT(table), sort, count, fill \
    }

const struct view views[] = {
    VIEW('t', "tasks", "tasks", task_columns, "cpu", count_tasks, fill_task),
    VIEW('H', "threads", "threads", thread_columns, "cpu", count_threads,
         fill_thread),
    VIEW('i', "ipc", "messages between tasks", ipc_columns, "rate", count_tasks,
         fill_ipc),
    VIEW('e', "exceptions", "exceptions and interrupts", exception_columns,
         "cpu", count_exceptions, fill_exception),
    VIEW('s', "syscalls", "system calls", syscall_columns, "cpu",
         count_syscalls, fill_syscall),
    VIEW('1', "cpus", "CPUs", cpu_columns, "id", count_cpus, fill_cpu),
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
