// A trace against the ledger: for each thread the pieces in which it runs, is
// ready, is blocked or is interrupted follow each other without gaps, from the
// first event to the last one, and what it ran is what the ledger charged to
// it, to the cycle. Each system call that begins ends, or its thread does.
//
//     trace_truth [WORKERS]        (4)
//
// The workers are blocked when the ledger is read, before and after: so its
// figures do not change while the trace begins and ends.
#include "test.h"

#include <inttypes.h>
#include <sched.h>

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"
#include "user/libtrace/lives.h"

#define WORKERS_MAX 16
#define BUFFER_BYTES (1 << 20)
#define THREADS_MAX 256

static struct worker {
    pid_t pid;
    struct sysinfo_thread before, after;
} workers[WORKERS_MAX];
static int worker_count = 4;
static int go[2], done[2];

static struct lives lives;
static uint64_t last, ended_in_call, calls;

// --- what is traced ---------------------------------------------------------

static void take_byte(int fd)
{
    char c;

    check(read(fd, &c, 1) == 1);
}

// Runs, sleeps, yields, waits for a child, has page faults.
static void work(int n)
{
    struct timespec ms = { .tv_nsec = 1000000 };

    for (int i = 0; i < 10; i++) {
        for (volatile int k = 0; k < 3000 * (n + 1); k++)
            __builtin_ia32_pause();
        sched_yield();
        if (i % 3 == n % 3)
            nanosleep(&ms, NULL);
        char *page = calloc(1, 300000);
        check(page);
        page[200000] = 1;
        free(page);
    }
    pid_t child = fork();
    check(child >= 0);
    if (!child)
        _exit(0);
    check(waitpid(child, NULL, 0) == child);
}

static _Noreturn void be_worker(int n)
{
    int never[2];

    check(pipe(never) == 0);
    take_byte(go[0]);
    work(n);
    check(write(done[1], "", 1) == 1);
    take_byte(never[0]); // until it is killed
    _exit(1);
}

// --- the ledger -------------------------------------------------------------

// The figures of a thread that is blocked.
static struct sysinfo_thread blocked_figures(pid_t pid)
{
    struct timespec ms = { .tv_nsec = 1000000 };
    char path[64];

    snprintf(path, sizeof(path), "system.threads.%d", (int)pid);
    for (;;) {
        size_t count = 0;
        struct sysinfo_thread *t = sysinfo_read_thread(path, &count), copy;
        check(t && count == 1);
        copy = *t;
        free(t);
        if (copy.state == SYSINFO_WAITING)
            return copy;
        nanosleep(&ms, NULL);
    }
}

// --- the trace --------------------------------------------------------------

static struct {
    uint32_t thread;
    bool in_call;
} threads[THREADS_MAX];

static bool *in_call(uint32_t thread)
{
    for (int i = 0; i < THREADS_MAX; i++) {
        if (!threads[i].thread)
            threads[i].thread = thread;
        if (threads[i].thread == thread)
            return &threads[i].in_call;
    }
    check(!"too many threads");
    return NULL;
}

static void on_event(void *arg, const struct trace_event *e)
{
    struct trace_sched_switch s;

    (void)arg;
    last = e->time;
    lives_event(&lives, e);
    check(e->type != TRACE_R_LOST);
    if (e->type == TRACE_syscall_enter) {
        check(!*in_call(e->thread));
        *in_call(e->thread) = true;
        calls++;
    } else if (e->type == TRACE_syscall_exit) {
        *in_call(e->thread) = false;
    } else if (e->type == TRACE_sched_switch) {
        check(trace_fields(e, &s, sizeof(s)));
        if (s.prev && lives_find(&lives, s.prev)->state == LIFE_ENDED) {
            ended_in_call += *in_call(s.prev);
            *in_call(s.prev) = false;
        }
    }
}

static void read_all(struct profile_session *s)
{
    struct trace_reader r = { .event = on_event };
    char *buffer = malloc(BUFFER_BYTES);
    int n;

    check(buffer);
    do {
        check(profile_trace_request(s, buffer, BUFFER_BYTES) == 0);
        n = profile_trace_answer(s, -1);
        check(n >= 0 || errno == ESHUTDOWN);
        if (n > 0)
            check(!trace_reader_take(&r, buffer, (size_t)n));
    } while (n > 0);
    trace_reader_finish(&r);
    check(r.lost == 0);
    trace_reader_free(&r);
    free(buffer);
}

// --- the comparison ---------------------------------------------------------

static void compare(const struct worker *w, uint64_t tsc_hz)
{
    const struct life *t = lives_find(&lives, (uint32_t)w->pid);
    const struct sysinfo_thread *a = &w->before, *b = &w->after;
    uint64_t ran = b->user + b->kernel - a->user - a->kernel;
    uint64_t all;

    check(t && t->state == LIFE_BLOCKED);
    all = t->running + t->interrupted + t->ready + t->blocked;
    dprintf(1,
            "%d: ran %" PRIu64 " cycles, in the ledger %" PRIu64
            "; interrupted %" PRIu64 ", ready %" PRIu64 ", blocked %" PRIu64
            ", %" PRIu64 " switches\n",
            (int)w->pid, t->running, ran, t->interrupted, t->ready, t->blocked,
            t->switches);
    check(t->running == ran);
    check(all == t->until - t->began && t->gaps == 0);
    // A thread that is preempted, and chosen again, has not left its CPU.
    check(t->switches <= b->voluntary + b->forced - a->voluntary - a->forced);
    // The ledger's is rounded to nanoseconds twice.
    double ready_ns = (double)t->ready * 1e9 / (double)tsc_hz;
    double off = ready_ns - (double)(b->ready - a->ready);
    check(off > -3 && off < 3);
}

int main(int argc, char *argv[])
{
    struct trace_options o = { .points = TRACE_ALL_POINTS,
                               .ring_bytes = BUFFER_BYTES };
    struct profile_session s = { 0 };
    struct trace_info info;

    if (argc > 1)
        worker_count = atoi(argv[1]);
    check(worker_count > 0 && worker_count <= WORKERS_MAX);
    check(pipe(go) == 0 && pipe(done) == 0);
    for (int i = 0; i < worker_count; i++) {
        workers[i].pid = fork();
        check(workers[i].pid >= 0);
        if (!workers[i].pid)
            be_worker(i);
    }
    for (int i = 0; i < worker_count; i++)
        workers[i].before = blocked_figures(workers[i].pid);
    check(profile_trace_begin(&s, &o) == 0);
    for (int i = 0; i < worker_count; i++)
        check(write(go[1], "", 1) == 1);
    for (int i = 0; i < worker_count; i++)
        take_byte(done[0]);
    for (int i = 0; i < worker_count; i++)
        workers[i].after = blocked_figures(workers[i].pid);
    check(profile_pause(&s, true) == 0);
    read_all(&s);
    check(profile_trace_info(&s, &info) == 0 && info.lost == 0);
    check(info.event_cycles > 0);
    profile_end(&s);

    check(lives.contradictions == 0);
    for (int i = 0; i < worker_count; i++)
        compare(&workers[i], info.tsc_hz);
    ok("the pieces of each thread's life tile it, and are the ledger's");
    check(calls > (uint64_t)worker_count * 20 && ended_in_call > 0);
    for (int i = 0; i < worker_count; i++)
        check(*in_call((uint32_t)workers[i].pid));
    ok("each system call ends, or its thread does");
    for (int i = 0; i < worker_count; i++) {
        kill(workers[i].pid, SIGKILL);
        check(waitpid(workers[i].pid, NULL, 0) == workers[i].pid);
    }
    lives_free(&lives);
    return 0;
}
