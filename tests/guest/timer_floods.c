// A user's timers do not take root's CPU: those whose signal is ignored cause
// no interrupts until it is not, and all others a bounded part of the time,
// however many they are and however short.
#include "test.h"

#include <grp.h>
#include <inttypes.h>
#include <sys/time.h>
#include <sys/utsname.h>

#include "user/libstrobe/sensor_print.h"
#include "user/libstrobe/sysinfo.h"

#define USER 1000u
#define OTHER_USER (USER + 64)
#define TIMERS 300
#define INTERVAL_NS 100000
#define WATCH_MS 300
#define OTHERS 200       // timers of the rest of the machine in that time
#define PART_OF_CPUS 0.2 // that interrupts may take, those of the rest included

static uint64_t fired(void)
{
    static struct sensor_file f;
    static bool open;
    if (!open)
        check(!sensor_file_open(&f, "/sensors/time/lateness"));
    open = true;
    struct sensor_totals t = sensor_view_totals(&f.view);
    return t.count + t.under + t.over;
}

struct cycles {
    uint64_t irq, elapsed;
};

static struct cycles cycles_now(void)
{
    size_t n;
    struct sysinfo_cpu *all = sysinfo_read_cpu("system.cpus", &n);
    struct cycles c = { 0 };
    check(all);
    for (size_t i = 0; i < n; i++) {
        c.irq += all[i].irq;
        c.elapsed += all[i].busy + all[i].idle;
    }
    free(all);
    return c;
}

// --- the user's tasks -------------------------------------------------------

static int ready[2], go[2], done[2];
static volatile sig_atomic_t handled;

static void count(int signal)
{
    (void)signal;
    handled++;
}

static void start_timers(int signal)
{
    struct itimerspec often = { { 0, INTERVAL_NS }, { 0, INTERVAL_NS } };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
                              .sigev_signo = signal };
    timer_t id;
    for (int i = 0; i < TIMERS; i++)
        check(timer_create(CLOCK_MONOTONIC, &event, &id) == 0 &&
              timer_settime(id, 0, &often, NULL) == 0);
}

static void stop_timers(void)
{
    for (intptr_t id = 0; id < TIMERS; id++)
        timer_delete((timer_t)id);
}

static void say(int fd)
{
    check(write(fd, "x", 1) == 1);
}

static void hear(int fd)
{
    char c;
    check(read(fd, &c, 1) == 1);
}

static void ignore_signals(void)
{
    struct itimerval often = { { 0, 100 }, { 0, 100 } }, left;
    on_signal(SIGUSR1, SIG_IGN, 0);
    on_signal(SIGALRM, SIG_IGN, 0);
    check(setitimer(ITIMER_REAL, &often, NULL) == 0);
    start_timers(SIGUSR1);
    sleep_ms(10);
    check(getitimer(ITIMER_REAL, &left) == 0);
    check(left.it_value.tv_usec > 0 && left.it_value.tv_usec <= 100);
    say(ready[1]);
    hear(go[0]);
    on_signal(SIGALRM, count, 0);
    while (!handled)
        sleep_ms(1);
    check(setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL) == 0);
    handled = 0;
    on_signal(SIGUSR1, count, 0);
    while (handled < 2)
        sleep_ms(1);
    on_signal(SIGUSR1, SIG_IGN, 0);
    stop_timers();
    say(done[1]);
}

static void block_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    check(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
    start_timers(SIGUSR1);
    say(ready[1]);
    hear(go[0]);
    say(done[1]);
}

// A task that sleeps in between: its handlers take what the scheduler gives it.
static void handle_signals(void)
{
    char c;
    on_signal(SIGRTMIN, count, 0);
    start_timers(SIGRTMIN);
    say(ready[1]);
    while (read(go[0], &c, 1) < 0)
        ;
    stop_timers();
    say(done[1]);
}

// Of expiries of the user's only timer, those that came with an overrun are
// few: each is late by less than the interval.
static void one_timer(void)
{
    enum { INTERVAL_MS = 5, EXPIRIES = 40 };
    struct itimerspec often = { { 0, INTERVAL_MS * 1000000 },
                                { 0, INTERVAL_MS * 1000000 } };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
                              .sigev_signo = SIGUSR1 };
    int late = 0, signal;
    sigset_t set;
    timer_t id;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    check(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    check(timer_create(CLOCK_MONOTONIC, &event, &id) == 0);
    check(timer_settime(id, 0, &often, NULL) == 0);
    for (int i = 0; i < EXPIRIES; i++) {
        check(sigwait(&set, &signal) == 0);
        late += timer_getoverrun(id) > 0;
    }
    dprintf(1, "# %d of %d expiries of another user are late\n", late,
            EXPIRIES);
    check(late < EXPIRIES / 2);
    say(done[1]);
}

// --- root's view ------------------------------------------------------------

static void as_user(unsigned user, void (*fn)(void))
{
    check(setgroups(0, NULL) == 0 && setgid(user) == 0 && setuid(user) == 0);
    fn();
    _exit(0);
}

// What happens while the user's timers run.
static void watch(void (*fn)(void), uint64_t *fires, double *part)
{
    int status;
    check(pipe(ready) == 0 && pipe(go) == 0 && pipe(done) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0)
        as_user(USER, fn);
    close(done[1]); // the user's end ends what is heard
    hear(ready[0]);
    sleep_ms(20);
    *fires = fired();
    struct cycles begin = cycles_now();
    sleep_ms(WATCH_MS);
    struct cycles end = cycles_now();
    *fires = fired() - *fires;
    *part = (double)(end.irq - begin.irq) / (end.elapsed - begin.elapsed);
    dprintf(1, "# %" PRIu64 " timers fired, %.1f %% in interrupts\n", *fires,
            100 * *part);
    say(go[1]);
    hear(done[0]);
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
    close(ready[0]);
    close(ready[1]);
    close(go[0]);
    close(go[1]);
    close(done[0]);
}

static void beside_another_user(void)
{
    int status;
    check(pipe(ready) == 0 && pipe(go) == 0 && pipe(done) == 0);
    pid_t flood = fork();
    check(flood >= 0);
    if (flood == 0)
        as_user(OTHER_USER, block_signals);
    hear(ready[0]);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0)
        as_user(USER, one_timer);
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
    say(go[1]);
    check(waitpid(flood, &status, 0) == flood && exited_with(status, 0));
}

int main(void)
{
    struct utsname names;
    uint64_t fires;
    double part;
    alarm(TEST_SECONDS);
    check(uname(&names) == 0);
    if (strcmp(names.sysname, "Strobe") != 0) {
        ok("nothing: this is not Strobe");
        return 0;
    }
    watch(ignore_signals, &fires, &part);
    check(fires < OTHERS);
    ok("no interrupts for ignored signals, until they are not");
    watch(block_signals, &fires, &part);
    check(part < PART_OF_CPUS);
    ok("pending signals: a bounded part of the time");
    watch(handle_signals, &fires, &part);
    check(part < PART_OF_CPUS);
    ok("handled signals: a bounded part of the time");
    beside_another_user();
    ok("a user does not pay for the timers of another one");
    return 0;
}
