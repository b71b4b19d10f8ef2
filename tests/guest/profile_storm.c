// Sampling and counting sessions, 16 at once, from all sources, of tasks that
// fork, exec and exit. Tools begin, pause and end them, or are killed: nothing
// leaks, and no source stays armed.
//
//     profile_storm [SECONDS]    (1)
#include "test.h"

#include <strobe/kbox.h>

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#define SESSIONS 16
#define TARGETS 4
#define TOOLS 10
#define QUIET_MS 100 // in which an armed source would interrupt
#define QUIET_TRIES 30
#define SESSION_BYTES 65536 // at least, and pipes take much less
#define NMI_LINE "  2:"

static char sources[SESSIONS][SPROFILE_SOURCE_NAME];
static unsigned source_count;
static pid_t targets[TARGETS];

static uint32_t random_below(uint32_t n)
{
    static uint32_t state;

    if (state == 0)
        state = (uint32_t)getpid() * 2654435761u + 1;
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

static void find_sources(void)
{
    size_t count;
    struct sysinfo_sampler *s =
        sysinfo_read_sampler("system.profile.sources", &count);

    check(s != NULL);
    for (size_t i = 0; i < count && source_count < SESSIONS; i++) {
        if (s[i].usable)
            strcpy(sources[source_count++], s[i].name);
    }
    free(s);
    check(source_count > 0);
}

// --- targets: they fork, execute and exit

static void target(char *name)
{
    for (;;) {
        pid_t pid = fork();
        if (pid == 0) {
            for (volatile uint32_t i = random_below(30000); i > 0; i--)
                ;
            if (random_below(2))
                execl("/bin/busybox", "true", NULL);
            _exit(0);
        }
        if (pid > 0)
            waitpid(pid, NULL, 0);
        if (random_below(30) == 0)
            execl("/proc/self/exe", name, "target", NULL);
    }
}

static pid_t start(void (*run)(char *name), char *name)
{
    pid_t pid = fork();

    check(pid >= 0);
    if (pid == 0) {
        alarm(TEST_SECONDS);
        run(name);
        _exit(0);
    }
    return pid;
}

static void end_of(pid_t pid)
{
    kill(pid, SIGKILL);
    check(waitpid(pid, NULL, 0) == pid);
}

// --- tools: each has a session, and ends it or is killed

static struct sprofile_options random_options(void)
{
    struct sprofile_options o = { .rate_hz = 100 + random_below(8000),
                                  .ring_bytes = 4096u << random_below(4) };

    strcpy(o.source, sources[random_below(source_count)]);
    o.flags |= random_below(2) ? SPROFILE_O_STACKS : 0;
    o.flags |= random_below(2) ? SPROFILE_O_RANDOM : 0;
    return o;
}

static void sample(pid_t pid)
{
    struct profile_session s = { 0 };
    struct sprofile_info info;
    struct sprofile_options o = random_options();
    bool system = random_below(3) == 0;

    if (!system && random_below(2))
        o.flags |= SPROFILE_O_CHILDREN;
    if ((system ? profile_begin_system(&s, &o) : profile_begin(&s, pid, &o)) <
        0)
        return; // 16 exist, the task is gone, or the NMIs have an owner
    for (uint32_t i = random_below(20); i > 0; i--) {
        switch (random_below(4)) {
        case 0:
            check(profile_pause(&s, random_below(2)) == 0);
            break;
        case 1:
            check(profile_info(&s, &info) == 0);
            check(info.taken == info.user + info.kernel + info.irq + info.idle);
            break;
        default:
            sleep_ms(random_below(3));
        }
    }
    if (random_below(3))
        profile_end(&s);
    else
        close(s.phone);
}

static void count(pid_t pid)
{
    struct profile_session s = { 0 };
    struct sprofile_counts c;
    struct sprofile_count_options o = {
        .events = 3, .event = { "task-clock", "cycles", "system-calls" }
    };

    o.flags = random_below(2) ? SPROFILE_O_CHILDREN : 0;
    if (profile_count_begin(&s, pid, &o) < 0)
        return;
    for (uint32_t i = random_below(5); i > 0; i--) {
        check(profile_count_read(&s, &c) == 0);
        sleep_ms(random_below(3));
    }
    if (random_below(3))
        profile_end(&s);
    else
        close(s.phone);
}

static void tool(char *name)
{
    (void)name;
    for (;;) {
        pid_t pid = targets[random_below(TARGETS)];
        if (random_below(3))
            sample(pid);
        else
            count(pid);
    }
}

// --- what remains afterwards

// The interrupts in /proc/interrupts that a source may use: all CPUs' NMIs, and
// those of devices. Not the clock's own, which never stop.
static uint64_t device_interrupts(void)
{
    char line[512];
    uint64_t sum = 0;
    FILE *f = fopen("/proc/interrupts", "r");

    check(f != NULL);
    while (fgets(line, sizeof(line), f) != NULL) {
        char *at = strchr(line, ':');
        bool timer =
            strstr(line, "hpet") || strstr(line, "rtc") || strstr(line, "pit");
        if (at == NULL || (!timer && strncmp(line, NMI_LINE, 4) != 0))
            continue;
        for (char *end = ++at;; at = end) {
            uint64_t n = strtoull(at, &end, 10);
            if (end == at)
                break;
            sum += n;
        }
    }
    fclose(f);
    return sum;
}

static uint64_t buffers(void)
{
    struct sysinfo_physmem m;

    check(sysinfo_get_physmem("system.physmem", &m) == 0);
    return m.buffer;
}

// Retries, because the last interrupt is late if the host stops its CPU. An
// armed source would interrupt in every try.
static void nothing_is_armed(void)
{
    uint64_t before, after = device_interrupts();
    int tries = 0;

    do {
        check(tries++ < QUIET_TRIES);
        before = after;
        sleep_ms(QUIET_MS);
        after = device_interrupts();
    } while (after != before);
}

// 16 sessions of each kind with filters, rates and, as far as NMIs have one
// owner, different sources. One more fails with EUSERS.
static void sixteen(void)
{
    struct profile_session s[SESSIONS + 1] = { 0 };
    struct profile_session c[SESSIONS + 1] = { 0 };
    struct sprofile_count_options count = { .events = 1,
                                            .event = { "task-clock" } };
    struct sprofile_info info;

    for (int i = 0; i < SESSIONS; i++) {
        struct sprofile_options o = { .rate_hz = 100 * (i + 1) };
        if (i % 2)
            strcpy(o.source, i % 4 == 1 ? "clock" : "rtc");
        if (i % 4 == 0)
            check(profile_begin_system(&s[i], &o) == 0);
        else
            check(profile_begin(&s[i], targets[i % TARGETS], &o) == 0);
        check(profile_count_begin(&c[i], targets[i % TARGETS], &count) == 0);
    }
    struct sprofile_options o = { 0 };
    check_error(profile_begin_system(&s[SESSIONS], &o), EUSERS);
    check_error(profile_count_begin(&c[SESSIONS], targets[0], &count), EUSERS);
    for (int i = 0; i < SESSIONS; i++) {
        if (i % 4 == 0) { // a busy system has samples soon
            do {
                sleep_ms(1);
                check(profile_info(&s[i], &info) == 0);
            } while (info.taken == 0);
        }
        struct sprofile_counts counts;
        check(profile_count_read(&c[i], &counts) == 0);
        check(counts.count[0].kind == SPROFILE_COUNT_NS);
        profile_end(&s[i]);
        profile_end(&c[i]);
    }
}

int main(int argc, char *argv[])
{
    unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    pid_t tools[TOOLS];

    if (argc > 1 && strcmp(argv[1], "target") == 0)
        target(argv[0]);
    if (sysinfo_get_type("system.profile.sources") < 0) {
        ok("nothing: this is not Strobe");
        return 0;
    }
    alarm(seconds + TEST_SECONDS);
    find_sources();
    nothing_is_armed();
    for (int i = 0; i < TARGETS; i++)
        targets[i] = start(target, argv[0]);
    // In a child, with which the mapped rings go.
    check(exited_with(in_child(sixteen), 0)); // also fills the caches
    ok("16 sessions of each kind at once");
    uint64_t before = buffers();
    for (int i = 0; i < TOOLS; i++)
        tools[i] = start(tool, NULL);
    for (uint64_t end = now_ns() + seconds * 1000000000ull; now_ns() < end;) {
        sleep_ms(random_below(10));
        uint32_t i = random_below(TOOLS);
        end_of(tools[i]);
        tools[i] = start(tool, NULL);
        i = random_below(TARGETS);
        if (random_below(4) == 0) {
            end_of(targets[i]);
            targets[i] = start(target, argv[0]);
        }
    }
    for (int i = 0; i < TOOLS; i++)
        end_of(tools[i]);
    nothing_is_armed();
    ok("no source stays armed");
    check(exited_with(in_child(sixteen), 0));
    for (int i = 0; i < TARGETS; i++)
        end_of(targets[i]);
    check(buffers() < before + SESSION_BYTES);
    ok("no ring stays behind, and there is room for as many as before");
    return 0;
}
