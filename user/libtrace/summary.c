// Tables of a trace: how often each event happened, what threads and CPUs did,
// and how long system calls, interrupts and page faults took.
#include "graph.h"
#include "lives.h"
#include "points.h"
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define IRQ_DEPTH_MAX 8u
#define VECTORS 256u
#define BIT(point) (1u << TRACE_##point)

struct durations {
    uint64_t count, cycles, most;
};

// Of one system call.
struct call {
    uint32_t number;
    struct durations took;
    uint64_t failed;
};

// A thread's open call and page fault.
struct opened {
    uint32_t thread;
    bool in_call, in_fault;
    uint32_t call;
    uint64_t call_at, fault_at;
};

struct summary {
    struct trace_file *file;
    uint64_t first, last;
    uint64_t events[1u << TRACE_TYPE_BITS];
    struct lives lives;
    struct call *calls;
    struct opened *threads;
    uint32_t call_count, call_room, thread_count, thread_room;
    struct durations vectors[VECTORS], faults;
    struct {
        uint32_t vector;
        uint64_t at;
    } irq[TRACE_CPUS_MAX][IRQ_DEPTH_MAX];
    uint32_t irq_depth[TRACE_CPUS_MAX];
    uint64_t calls_ended;    // with their threads
    uint64_t calls_unpaired; // a begin or an end is missing
    bool no_memory;
};

static void add(struct durations *d, uint64_t cycles)
{
    d->count++;
    d->cycles += cycles;
    if (cycles > d->most)
        d->most = cycles;
}

// An array's next element, zeroed.
static void *grow(struct summary *s, void **array, uint32_t *count,
                  uint32_t *room, size_t size)
{
    if (*count == *room) {
        uint32_t more = *room ? *room * 2 : 64;
        void *larger = realloc(*array, more * size);
        if (!larger) {
            s->no_memory = true;
            return NULL;
        }
        *array = larger;
        *room = more;
    }
    return memset((char *)*array + (*count)++ * size, 0, size);
}

static struct call *call_of(struct summary *s, uint32_t number)
{
    for (uint32_t i = 0; i < s->call_count; i++) {
        if (s->calls[i].number == number)
            return &s->calls[i];
    }
    struct call *c =
        grow(s, (void **)&s->calls, &s->call_count, &s->call_room, sizeof(*c));
    if (c)
        c->number = number;
    return c;
}

static struct opened *opened_of(struct summary *s, uint32_t thread)
{
    for (uint32_t i = s->thread_count; i--;) {
        if (s->threads[i].thread == thread)
            return &s->threads[i];
    }
    struct opened *t = grow(s, (void **)&s->threads, &s->thread_count,
                            &s->thread_room, sizeof(*t));
    if (t)
        t->thread = thread;
    return t;
}

// --- events -----------------------------------------------------------------

static uint32_t word(const struct trace_event *e, uint32_t n)
{
    uint32_t w;

    memcpy(&w, e->fields + n * 4, sizeof(w));
    return w;
}

static void on_call(struct summary *s, const struct trace_event *e)
{
    struct opened *t = opened_of(s, e->thread);

    if (!t)
        return;
    s->calls_unpaired += t->in_call;
    t->in_call = true;
    t->call = word(e, 0);
    t->call_at = e->time;
}

// The number is that of the begin: sigreturn changes the registers.
static void on_call_end(struct summary *s, const struct trace_event *e)
{
    struct opened *t = opened_of(s, e->thread);
    struct call *c;

    if (!t || !t->in_call) { // it began before the trace, or with a fork
        return;
    }
    t->in_call = false;
    c = call_of(s, t->call);
    if (!c)
        return;
    add(&c->took, e->time - t->call_at);
    c->failed += word(e, 1) > UINT32_MAX - 4095;
}

static void on_fault(struct summary *s, const struct trace_event *e)
{
    struct opened *t = opened_of(s, e->thread);

    if (!t)
        return;
    if (e->type == TRACE_page_fault)
        t->fault_at = e->time;
    else if (t->in_fault)
        add(&s->faults, e->time - t->fault_at);
    t->in_fault = e->type == TRACE_page_fault;
}

static void on_irq(struct summary *s, const struct trace_event *e)
{
    uint32_t *depth = &s->irq_depth[e->cpu];

    if (*depth < IRQ_DEPTH_MAX) {
        s->irq[e->cpu][*depth].vector = word(e, 0);
        s->irq[e->cpu][*depth].at = e->time;
    }
    ++*depth;
}

static void on_irq_end(struct summary *s, const struct trace_event *e)
{
    uint32_t *depth = &s->irq_depth[e->cpu];

    if (!*depth || --*depth >= IRQ_DEPTH_MAX)
        return;
    if (s->irq[e->cpu][*depth].vector < VECTORS)
        add(&s->vectors[s->irq[e->cpu][*depth].vector],
            e->time - s->irq[e->cpu][*depth].at);
}

// A thread that ends leaves its call open.
static void on_switch(struct summary *s, const struct trace_event *e)
{
    struct trace_sched_switch change;
    enum { DEAD = 5 };

    if (!trace_fields(e, &change, sizeof(change)) || change.state != DEAD)
        return;
    struct opened *t = opened_of(s, change.prev);
    if (!t)
        return;
    s->calls_ended += t->in_call;
    *t = s->threads[--s->thread_count];
}

// What is open is not known any more.
static void on_loss(struct summary *s)
{
    s->thread_count = 0;
    memset(s->irq_depth, 0, sizeof(s->irq_depth));
}

static void on_event(void *arg, const struct trace_event *e)
{
    struct summary *s = arg;

    if (!s->first)
        s->first = e->time;
    s->last = e->time;
    s->events[e->type]++;
    lives_event(&s->lives, e);
    switch (e->type) {
    case TRACE_syscall_enter:
        on_call(s, e);
        break;
    case TRACE_syscall_exit:
        on_call_end(s, e);
        break;
    case TRACE_page_fault:
    case TRACE_page_fault_end:
        on_fault(s, e);
        break;
    case TRACE_irq_enter:
        on_irq(s, e);
        break;
    case TRACE_irq_exit:
        on_irq_end(s, e);
        break;
    case TRACE_sched_switch:
        on_switch(s, e);
        break;
    case TRACE_R_LOST:
        on_loss(s);
        break;
    }
}

// --- tables -----------------------------------------------------------------

// Microseconds, with three digits behind the point.
static void put_us(FILE *out, const struct summary *s, uint64_t cycles)
{
    uint64_t ns = trace_file_ns(s->file, cycles);

    fprintf(out, " %12" PRIu64 ".%03" PRIu64, ns / 1000, ns % 1000);
}

static void put_durations(FILE *out, const struct summary *s,
                          const struct durations *d)
{
    fprintf(out, " %9" PRIu64, d->count);
    put_us(out, s, d->cycles);
    put_us(out, s, d->count ? d->cycles / d->count : 0);
    put_us(out, s, d->most);
}

static void put_events(FILE *out, const struct summary *s)
{
    uint64_t ns = trace_file_ns(s->file, s->last - s->first);

    fprintf(out, "\n%-24s %9s %12s\n", "Event", "Count", "Per second");
    for (uint32_t i = 0; i < 1u << TRACE_TYPE_BITS; i++) {
        if (!s->events[i])
            continue;
        fprintf(out, "%-24s %9" PRIu64, trace_point_name(i), s->events[i]);
        if (ns)
            fprintf(out, " %12" PRIu64,
                    (uint64_t)((double)s->events[i] * 1e9 / (double)ns));
        fputc('\n', out);
    }
}

static void put_threads(FILE *out, const struct summary *s)
{
    fprintf(out, "\n%-24s %9s %16s %16s %16s %16s\n", "Thread", "Switches",
            "Running, us", "Interrupted", "Ready", "Blocked");
    for (uint32_t i = 0; i < s->lives.count; i++) {
        const struct life *t = &s->lives.all[i];
        char name[32];
        trace_file_thread(s->file, t->thread, name);
        fprintf(out, "%-24s %9" PRIu64, name, t->switches);
        put_us(out, s, t->running);
        put_us(out, s, t->interrupted);
        put_us(out, s, t->ready);
        put_us(out, s, t->blocked);
        fputc('\n', out);
    }
    fprintf(out, "\n%-24s %26s %16s %16s\n", "CPU", "Busy, us", "Interrupts",
            "Idle");
    for (uint32_t i = 0; i < s->file->head.cpus; i++) {
        fprintf(out, "%-24" PRIu32 " %9s", i, "");
        put_us(out, s, s->lives.cpu[i].busy);
        put_us(out, s, s->lives.cpu[i].interrupts);
        put_us(out, s, s->lives.cpu[i].idle);
        fputc('\n', out);
    }
}

static void put_title(FILE *out, const char *what)
{
    fprintf(out, "\n%-24s %9s %16s %16s %16s\n", what, "Count", "Sum, us",
            "Mean", "Longest");
}

static int most_first(const void *a, const void *b)
{
    const struct call *x = a, *y = b;

    if (x->took.cycles != y->took.cycles)
        return x->took.cycles < y->took.cycles ? 1 : -1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void put_calls(FILE *out, struct summary *s)
{
    uint64_t open = 0;

    put_title(out, "System call");
    if (s->call_count)
        qsort(s->calls, s->call_count, sizeof(*s->calls), most_first);
    for (uint32_t i = 0; i < s->call_count; i++) {
        const struct call *c = &s->calls[i];
        fprintf(out, "%-24s", trace_call_name(c->number));
        put_durations(out, s, &c->took);
        if (c->failed)
            fprintf(out, "  %" PRIu64 " failed", c->failed);
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < s->thread_count; i++)
        open += s->threads[i].in_call;
    fprintf(out,
            "Calls that ended with their thread: %" PRIu64
            "; that go on: %" PRIu64 "; without an end: %" PRIu64 "\n",
            s->calls_ended, open, s->calls_unpaired);
}

static void put_vectors(FILE *out, const struct summary *s)
{
    put_title(out, "Interrupt");
    for (uint32_t i = 0; i < VECTORS; i++) {
        if (!s->vectors[i].count)
            continue;
        fprintf(out, "%-24" PRIu32, i);
        put_durations(out, s, &s->vectors[i]);
        fputc('\n', out);
    }
}

static void put_all(FILE *out, struct summary *s)
{
    uint32_t points = s->file->head.points;

    trace_header(out, s->file, s->last - s->first,
                 s->file->head.task ? NULL : &s->lives);
    if (s->no_memory || s->lives.no_memory)
        fputs("MISSING: parts of the tables, for want of memory\n", out);
    put_events(out, s);
    if (s->file->head.task)
        fputs("\nNo table of threads: who wakes the task's threads is not in "
              "its trace\n",
              out);
    else if ((points & BIT(sched_switch)) && (points & BIT(sched_wake)))
        put_threads(out, s);
    if ((points & BIT(syscall_enter)) && (points & BIT(syscall_exit)))
        put_calls(out, s);
    if ((points & BIT(irq_enter)) && (points & BIT(irq_exit)))
        put_vectors(out, s);
    if (s->faults.count) {
        put_title(out, "Page fault");
        fprintf(out, "%-24s", "all");
        put_durations(out, s, &s->faults);
        fputc('\n', out);
    }
}

const char *trace_summary(FILE *out, struct trace_file *f)
{
    struct summary *s = calloc(1, sizeof(*s));

    if (!s)
        return "not enough memory";
    s->file = f;
    const char *problem = trace_file_events(f, on_event, s);
    lives_finish(&s->lives, s->last);
    put_all(out, s);
    lives_free(&s->lives);
    free(s->calls);
    free(s->threads);
    free(s);
    return problem;
}
