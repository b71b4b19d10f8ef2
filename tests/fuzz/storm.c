// Sampling and counting sessions, of the machine and of tasks, at up to 20 kHz
// and at trace points, traces of calls and of events, and readers of sensors,
// that begin and end while operations are made. They use the interface
// correctly; operations also misuse it.
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/tracing.h"

#define TOOLS 2
#define RATE_MAX 20000
#define SESSION_NS 20000000 // at most
#define TRACED_MAX 1000     // functions
#define PATH_BYTES 600

static pid_t group; // of all tools

static void take(void *sum, const void *bytes, size_t size)
{
    (void)bytes;
    *(size_t *)sum += size;
}

static void some_time(struct draw *d)
{
    long ns = (long)draw_below(d, SESSION_NS);
    nanosleep(&(struct timespec){ 0, ns }, NULL);
}

static pid_t some_target(struct draw *d)
{
    const struct lane *lane = &shared->lanes[draw_below(d, LANES)];
    uint32_t tid = lane->progress[draw_below(d, WORKERS)].tid;
    return tid != 0 ? (pid_t)tid : getppid();
}

static void sample(struct draw *d)
{
    struct profile_session s = { 0 };
    struct sprofile_options o = {
        .flags = draw_below(d, 16) << 1, // all but FROM_EXEC
        .rate_hz = 1 + draw_below(d, RATE_MAX),
        .ring_bytes = PAGE << draw_below(d, 6),
    };
    size_t sum = 0;

    if (draw_below(d, 4) == 0) {
        static const char *const points[] = { "sched/switch", "page/fault",
                                              "irq/exit", "heap/alloc:bytes",
                                              "syscall/enter" };
        strcpy(o.source, SPROFILE_POINT_SOURCE);
        strcpy(o.event, points[draw_below(d, 5)]);
        o.period = 1 + draw_below(d, 100);
    }
    if ((draw_below(d, 2) ? profile_begin_system(&s, &o)
                          : profile_begin(&s, some_target(d), &o)) < 0)
        return; // the task is gone
    some_time(d);
    if (draw_below(d, 2) && profile_request(&s) == 0)
        profile_answer(&s, 10, take, &sum);
    if (draw_below(d, 4))
        profile_end(&s);
    else
        close(s.phone);
}

static void count(struct draw *d)
{
    struct profile_session s = { 0 };
    struct sprofile_counts c;
    struct sprofile_count_options o = {
        .events = 3, .event = { "task-clock", "page-faults", "system-calls" }
    };
    if (profile_count_begin(&s, some_target(d), &o) < 0)
        return;
    some_time(d);
    profile_count_read(&s, &c);
    profile_end(&s);
}

static void trace(struct draw *d)
{
    static uint32_t functions[TRACED_MAX];
    int phone = tracing_phone();
    struct calls_options o = {
        .mode = draw_below(d, 4) ? CALLS_PATHS : CALLS_ARCS,
        .task = draw_below(d, 4) ? 0 : (uint32_t)some_target(d),
        .depth = draw_below(d, 20),
        .entries = draw_below(d, 2) ? 256 : 4096,
        .functions = (uint32_t)functions,
        .function_count = some_functions(d, functions, TRACED_MAX),
    };

    if (phone < 0 || tracing_begin(phone, &o) < 0)
        return; // another trace, or the task is gone
    for (uint32_t n = draw_below(d, 4); n > 0; n--) {
        some_time(d);
        free(tracing_read(phone, draw_below(d, 2)));
        tracing_pause(phone, draw_below(d, 2));
    }
    some_time(d);
    if (draw_below(d, 2))
        tracing_end(phone);
}

// Appends the name of one of a folder's entries to `path`. False: it is not a
// folder, or is empty.
static bool enter_some(struct draw *d, char path[PATH_BYTES])
{
    size_t length = strlen(path);
    uint32_t count = 0;
    DIR *folder = opendir(path);

    if (folder == NULL)
        return false;
    // The n-th is taken with a chance of 1 / n: each is as likely.
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        if (e->d_name[0] != '.' && draw_below(d, ++count) == 0)
            snprintf(path + length, PATH_BYTES - length, "/%s", e->d_name);
    }
    closedir(folder);
    return count > 0;
}

int open_some_sensor(struct draw *d)
{
    char path[PATH_BYTES] = "/sensors";
    struct stat s;

    while (enter_some(d, path))
        ;
    // An empty folder is none: calls by its descriptor would leave the jail.
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) ? open(path, O_RDONLY)
                                                     : -1;
}

static void watch_a_sensor(struct draw *d)
{
    char bytes[512];
    int fd = open_some_sensor(d);
    if (fd < 0)
        return;
    const volatile uint32_t *map =
        mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    for (uint32_t n = draw_below(d, 4); n > 0; n--) {
        some_time(d);
        (void)!pread(fd, bytes, sizeof(bytes), 0);
        if (map != MAP_FAILED)
            (void)map[draw_below(d, PAGE / 4)];
    }
    close(fd); // the map stays until the task ends
}

static void trace_events(struct draw *d)
{
    static uint32_t functions[TRACED_MAX];
    struct profile_session s = { 0 };
    struct trace_options o = {
        .task = draw_below(d, 4) ? 0 : (uint32_t)some_target(d),
        .points = draw_word(d) & TRACE_ALL_POINTS,
        .ring_bytes = 8192u << draw_below(d, 6),
        .flight_ms = draw_below(d, 4) ? 0 : 1 + draw_below(d, 20),
    };
    if (draw_below(d, 2)) {
        o.functions = (uint32_t)functions;
        o.function_count = some_functions(d, functions, TRACED_MAX);
    }
    static char buffer[65536];
    if (profile_trace_begin(&s, &o) < 0)
        return; // another trace, or the task is gone
    for (uint32_t n = draw_below(d, 4); n > 0; n--) {
        some_time(d);
        if (o.flight_ms == 0 &&
            profile_trace_request(&s, buffer, sizeof(buffer)) == 0)
            profile_trace_answer(&s, 10);
    }
    if (draw_below(d, 4))
        profile_end(&s);
    else
        close(s.phone);
}

static void use_a_tool(struct draw *d)
{
    switch (draw_below(d, 12)) {
    case 0:
    case 1:
        trace(d);
        break;
    case 2:
    case 3:
        count(d);
        break;
    case 4:
    case 5:
        trace_events(d);
        break;
    case 6:
    case 7:
        watch_a_sensor(d);
        break;
    default:
        sample(d);
    }
}

void storm_begin(uint32_t seed)
{
    for (uint32_t i = 0; i < TOOLS; i++) {
        struct draw d = draw_of(seed, ~(uint64_t)i);
        pid_t tool = fork();
        setpgid(tool, group);
        if (i == 0 && tool > 0)
            group = tool;
        // Mapped rings stay until they are unmapped, so each session has its
        // own task.
        while (tool == 0) {
            pid_t pid = fork();
            if (pid == 0) {
                use_a_tool(&d);
                _exit(0);
            }
            waitpid(pid, NULL, 0);
            some_time(&d);
        }
    }
}

bool storm_is(pid_t process_group)
{
    return group != 0 && process_group == group;
}

void storm_end(void)
{
    if (group == 0)
        return;
    kill(-group, SIGKILL);
    group = 0;
}
