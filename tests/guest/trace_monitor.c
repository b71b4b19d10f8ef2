// The rings of a trace as sensors, /sensors/kernel/trace/N.CPU: a monitor that
// only reads has exactly the events that the trace's own reader has, each with
// its number, or counts them as lost; whoever of the two is slower, while the
// rings are written, and when trace, tracer or monitor end.
#include "test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "user/libread/sensor_read.h"
#include "user/libstrobe/sensor_print.h"
#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"
#include "user/libtrace/reader.h"

#define BUFFER_BYTES (256u << 10)
#define NUMBERS_MAX 30000u // of a CPU's events
#define CPUS_MAX 8u
#define USER 1000

// What an event is compared by; type 0 with time 0: none.
struct seen {
    uint64_t time;
    uint32_t type, thread, size;
    uint8_t fields[TRACE_FIELDS_MAX];
};

// By number. Shared with children, which monitor.
static struct cpu {
    uint32_t count, lost;
    struct seen of[NUMBERS_MAX];
} * own, *monitored;
static uint32_t cpus;

// --- the worker, whose events are traced ------------------------------------

static struct worker {
    pid_t pid;
    int go[2], done[2];
} worker;

static void take_byte(int fd)
{
    char c;

    check(read(fd, &c, 1) == 1);
}

// For each byte it makes some system calls, on one CPU and then another one.
static _Noreturn void be_worker(void)
{
    char c;

    for (uint32_t round = 0; read(worker.go[0], &c, 1) == 1; round++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(round % cpus, &set);
        check(sched_setaffinity(0, sizeof(set), &set) == 0);
        for (int i = 0; i < 150; i++)
            getppid();
        check(write(worker.done[1], "", 1) == 1);
    }
    _exit(0);
}

static void start_worker(void)
{
    check(pipe(worker.go) == 0 && pipe(worker.done) == 0);
    worker.pid = fork();
    check(worker.pid >= 0);
    if (!worker.pid) {
        close(worker.go[1]);
        be_worker();
    }
    close(worker.go[0]);
}

static void end_worker(void)
{
    close(worker.go[1]);
    check(waitpid(worker.pid, NULL, 0) == worker.pid);
    close(worker.done[0]);
    close(worker.done[1]);
}

static void let_it_work(void)
{
    check(write(worker.go[1], "", 1) == 1);
    take_byte(worker.done[0]);
}

// --- the trace and its own reader -------------------------------------------

static struct profile_session session;
static struct trace_reader reader;

static void on_event(void *arg, const struct trace_event *e)
{
    struct cpu *c = &own[e->cpu];
    uint32_t missing;

    (void)arg;
    if (e->type == TRACE_R_LOST) {
        check(trace_fields(e, &missing, sizeof(missing)));
        c->count += missing;
        c->lost += missing;
        return;
    }
    check(c->count < NUMBERS_MAX);
    struct seen *s = &c->of[c->count++];
    *s = (struct seen){ e->time, e->type, e->thread, e->size, { 0 } };
    check(e->size <= sizeof(s->fields));
    memcpy(s->fields, e->fields, e->size);
}

static void begin(uint32_t ring_bytes, pid_t task)
{
    struct trace_options o = { .points = TRACE_ALL_POINTS,
                               .ring_bytes = ring_bytes,
                               .task = (uint32_t)task };

    memset(own, 0, cpus * sizeof(*own));
    memset(monitored, 0, cpus * sizeof(*own));
    memset(&session, 0, sizeof(session));
    memset(&reader, 0, sizeof(reader));
    reader.event = on_event;
    check(profile_trace_begin(&session, &o) == 0);
}

// Reads once, if there is something within this time. False: there is no more.
static bool read_own(int timeout_ms)
{
    static char buffer[BUFFER_BYTES];

    check(profile_trace_request(&session, buffer, sizeof(buffer)) == 0);
    int n = profile_trace_answer(&session, timeout_ms);
    if (n < 0 && errno == ETIMEDOUT)
        return true;
    check(n >= 0 || errno == ESHUTDOWN);
    if (n > 0)
        check(!trace_reader_take(&reader, buffer, (size_t)n));
    return n > 0;
}

static void finish_own(void)
{
    check(profile_pause(&session, true) == 0);
    while (read_own(-1))
        ;
    trace_reader_finish(&reader);
    trace_reader_free(&reader);
}

// --- the monitor ------------------------------------------------------------

static struct monitor {
    char path[SENSOR_PATH_MAX + 1];
    struct sensor_file file;
    struct sensor_ring_cursor cursor;
} monitors[CPUS_MAX];

// The paths of the trace that a task has begun: N.CPU.
static void find_rings(pid_t owner)
{
    size_t count, found = 0;
    struct sysinfo_sensor *all = sysinfo_read_sensor("system.sensors", &count);
    const char folder[] = "/sensors/kernel/trace/";

    check(all);
    for (size_t i = 0; i < count; i++) {
        const char *dot = strrchr(all[i].path, '.');
        if (all[i].owner != (uint32_t)owner ||
            strncmp(all[i].path, folder, strlen(folder)) != 0)
            continue;
        check(strcmp(all[i].type, "ring") == 0 &&
              strcmp(all[i].state, "open") == 0);
        strcpy(monitors[atoi(dot + 1)].path, all[i].path);
        found++;
    }
    check(found == cpus);
    free(all);
}

static void open_rings(pid_t owner)
{
    find_rings(owner);
    for (uint32_t i = 0; i < cpus; i++) {
        struct monitor *m = &monitors[i];
        check(!sensor_file_open(&m->file, m->path));
        check(m->file.view.header.layout.ring.trace);
        sensor_ring_cursor_begin(&m->cursor, &m->file.view);
        m->cursor.begun = true; // from number 0 on
    }
}

static void close_rings(void)
{
    for (uint32_t i = 0; i < cpus; i++)
        sensor_file_close(&monitors[i].file);
}

static bool is_closed(const struct monitor *m)
{
    const volatile struct sensor_header *h = m->file.memory;

    return h->closed_ns.low || h->closed_ns.high;
}

static void read_ring(uint32_t cpu, bool over)
{
    union {
        struct sensor_record record;
        uint32_t words[64];
    } r;
    struct monitor *m = &monitors[cpu];
    struct cpu *c = &monitored[cpu];
    uint32_t head = sizeof(r.record) + sizeof(uint32_t);

    while (
        sensor_ring_cursor_next(&m->cursor, &m->file.view, over, &r.record)) {
        uint64_t time = sensor_wide_read(&r.record.time);
        check(r.record.number < NUMBERS_MAX && r.record.size >= head);
        struct seen *s = &c->of[r.record.number];
        check(!s->time); // no number comes twice
        *s = (struct seen){ time,
                            r.record.type,
                            r.record.payload[0],
                            r.record.size - head,
                            { 0 } };
        check(s->size <= sizeof(s->fields));
        memcpy(s->fields, &r.record.payload[1], s->size);
    }
    c->count = m->cursor.next;
    c->lost = (uint32_t)m->cursor.lost;
    check(!m->cursor.spoilt);
}

static void read_rings(bool over)
{
    for (uint32_t i = 0; i < cpus; i++)
        read_ring(i, over);
}

// All that the monitor has is what the own reader has. Returns how many events
// are in both.
static uint32_t compare(void)
{
    uint32_t both = 0;

    for (uint32_t i = 0; i < cpus; i++) {
        const struct cpu *o = &own[i], *m = &monitored[i];
        uint32_t there = 0;
        check(m->count == o->count);
        for (uint32_t n = 0; n < m->count; n++) {
            const struct seen *a = &o->of[n], *b = &m->of[n];
            if (!b->time)
                continue;
            there++;
            check(a->time == b->time && a->type == b->type);
            check(a->thread == b->thread);
            check(a->size >= b->size && a->size - b->size < 4);
            check(memcmp(a->fields, b->fields, b->size) == 0);
        }
        check(there + m->lost == m->count);
        both += there;
        dprintf(1,
                "CPU %" PRIu32 ": %" PRIu32 " events; own reader lost %" PRIu32
                ", monitor %" PRIu32 "\n",
                i, o->count, o->lost, m->lost);
    }
    return both;
}

static uint32_t events_of(const struct cpu *all)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cpus; i++)
        n += all[i].count - all[i].lost;
    return n;
}

static uint32_t lost_of(const struct cpu *all)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cpus; i++)
        n += all[i].lost;
    return n;
}

// The trace has ended: what is lost behind its last events is told by INFO.
static void check_losses(void)
{
    struct trace_info info;

    check(profile_trace_info(&session, &info) == 0);
    check(info.recorded == events_of(own));
    for (uint32_t i = 0; i < cpus; i++) {
        uint32_t more = monitored[i].count - own[i].count;
        check(monitored[i].count >= own[i].count);
        own[i].count += more;
        own[i].lost += more;
    }
    check(info.lost == lost_of(own));
}

// --- the tests --------------------------------------------------------------

static void test_all_events(void)
{
    start_worker();
    begin(256u << 10, worker.pid);
    open_rings(getpid());
    for (uint32_t i = 0; i < 2 * cpus; i++)
        let_it_work();
    read_rings(false); // before the own reader, and after it
    check(events_of(monitored) > cpus * 300);
    for (uint32_t i = 0; i < 2 * cpus; i++)
        let_it_work();
    finish_own();
    read_rings(false);
    check(compare() == events_of(own) && !lost_of(own) && !lost_of(monitored));
    ok("a monitor has the events of the trace's own reader");

    // A monitor that comes now has them, too.
    close_rings();
    memset(monitored, 0, cpus * sizeof(*own));
    open_rings(getpid());
    read_rings(false);
    check(compare() == events_of(own));
    profile_end(&session);
    for (uint32_t i = 0; i < cpus; i++) {
        check_error(open(monitors[i].path, O_RDONLY), ENOENT);
        check(is_closed(&monitors[i]));
        sensor_ring_cursor_begin(&monitors[i].cursor, &monitors[i].file.view);
        monitors[i].cursor.begun = true;
    }
    memset(monitored, 0, cpus * sizeof(*own));
    read_rings(true);
    check(compare() == events_of(own));
    close_rings();
    end_worker();
    ok("what was mapped stays when the trace has ended, and says so");
}

// The rings are two pages each.
static void test_slow_monitor(void)
{
    start_worker();
    begin(8192, worker.pid);
    open_rings(getpid());
    for (uint32_t i = 0; i < 20 * cpus; i++) {
        let_it_work();
        read_own(0);
        if (i % (7 * cpus) == 0)
            read_rings(false);
    }
    finish_own();
    read_rings(true);
    check_losses();
    compare();
    check(lost_of(monitored) > lost_of(own));
    profile_end(&session);
    close_rings();
    end_worker();
    ok("what a slow monitor has not read is counted");
}

// Nobody else reads: what has no room is lost for both.
static void test_full(void)
{
    start_worker();
    begin(8192, worker.pid);
    open_rings(getpid());
    for (uint32_t i = 0; i < 4 * cpus; i++)
        let_it_work();
    finish_own();
    read_rings(true);
    check_losses();
    check(compare() == events_of(own) && lost_of(own) > 0);
    check(lost_of(monitored) == lost_of(own));
    profile_end(&session);
    close_rings();
    end_worker();
    ok("what had no room is lost for the monitor, too");
}

// Another task monitors all the time, on a CPU of its own if there is one.
static void test_concurrent_monitor(void)
{
    int ready[2];

    start_worker();
    begin(8192, worker.pid);
    check(pipe(ready) == 0);
    pid_t child = fork();
    check(child >= 0);
    if (!child) {
        struct timespec pause = { .tv_nsec = 50000 };
        open_rings(getppid());
        check(write(ready[1], "", 1) == 1);
        while (!is_closed(&monitors[0])) {
            read_rings(false);
            nanosleep(&pause, NULL);
        }
        read_rings(true);
        _exit(0);
    }
    take_byte(ready[0]);
    for (uint32_t i = 0; i < 15 * cpus; i++) {
        let_it_work();
        read_own(0);
    }
    finish_own();
    struct trace_info info;
    check(profile_trace_info(&session, &info) == 0);
    profile_end(&session);
    int status;
    check(waitpid(child, &status, 0) == child && exited_with(status, 0));
    for (uint32_t i = 0; i < cpus; i++) {
        uint32_t more = monitored[i].count - own[i].count;
        own[i].count += more;
        own[i].lost += more;
    }
    check(info.lost == lost_of(own));
    check(compare() > 0);
    close(ready[0]);
    close(ready[1]);
    end_worker();
    ok("a monitor reads while the rings are written");
}

static void test_killed(void)
{
    int ready[2];

    start_worker();
    check(pipe(ready) == 0);
    pid_t tracer = fork();
    check(tracer >= 0);
    if (!tracer) {
        begin(65536, worker.pid);
        check(write(ready[1], "", 1) == 1);
        for (;;)
            pause();
    }
    take_byte(ready[0]);
    open_rings(tracer);
    pid_t monitor = fork(); // has the mappings, too
    check(monitor >= 0);
    if (!monitor) {
        for (;;)
            pause();
    }
    kill(monitor, SIGKILL);
    check(waitpid(monitor, NULL, 0) == monitor);
    let_it_work();
    check(!is_closed(&monitors[0]));
    kill(tracer, SIGKILL);
    check(waitpid(tracer, NULL, 0) == tracer);
    struct timespec ms = { .tv_nsec = 1000000 };
    while (!is_closed(&monitors[cpus - 1]))
        nanosleep(&ms, NULL);
    let_it_work(); // of this nothing is recorded
    memset(monitored, 0, cpus * sizeof(*own));
    read_rings(true);
    check(events_of(monitored) >= 300 && events_of(monitored) < 600);
    check_error(access(monitors[0].path, F_OK), ENOENT);
    close_rings();
    close(ready[0]);
    close(ready[1]);
    end_worker();
    ok("a killed monitor changes nothing, a killed tracer ends the trace");
}

static void be_refused(void)
{
    check(setuid(USER) == 0);
    check_error(open(monitors[0].path, O_RDONLY), EACCES);
    check_error(unlink(monitors[0].path), EACCES);
}

static void test_permissions(void)
{
    struct stat st;

    begin(65536, 0);
    find_rings(getpid());
    check(stat(monitors[0].path, &st) == 0);
    check(st.st_uid == 0 && (st.st_mode & 07777) == 0400);
    check(exited_with(in_child(be_refused), 0));
    check_error(open(monitors[0].path, O_RDWR), EACCES);
    check_error(unlink(monitors[0].path), EPERM);
    int fd = open(monitors[0].path, O_RDONLY);
    check(fd >= 0);
    check(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) ==
          MAP_FAILED);
    close(fd);
    profile_end(&session);
    ok("only the user who traces reads, and nobody writes");
}

static void *shared_memory(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    check(at != MAP_FAILED);
    return at;
}

int main(void)
{
    cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    check(cpus > 0 && cpus <= CPUS_MAX);
    own = shared_memory(cpus * sizeof(*own));
    monitored = shared_memory(cpus * sizeof(*own));
    test_all_events();
    test_slow_monitor();
    test_full();
    test_concurrent_monitor();
    test_killed();
    test_permissions();
    return 0;
}
