// POSIX timers: expiry, values, overruns, many at once, and the effect of exec
// and fork.
#include "spans.h"

#include <limits.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>

// --- POSIX timers -----------------------------------------------------------

static timer_t make(clockid_t clock, int signal, int value)
{
    timer_t id;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
                              .sigev_signo = signal,
                              .sigev_value.sival_int = value };
    check(timer_create(clock, &event, &id) == 0);
    return id;
}

static void set(timer_t id, int flags, uint64_t value, uint64_t interval)
{
    struct itimerspec s = { spec(interval), spec(value) };
    check(timer_settime(id, flags, &s, NULL) == 0);
}

static uint64_t left_of(timer_t id)
{
    struct itimerspec s;
    check(timer_gettime(id, &s) == 0);
    return from_spec(&s.it_value);
}

static sigset_t only(int signal)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    return set;
}

static void timers_expire(void)
{
    static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC,
                                        CLOCK_BOOTTIME };
    sigset_t set10 = only(SIGUSR1);
    siginfo_t info;
    check(sigprocmask(SIG_BLOCK, &set10, NULL) == 0);
    for (int i = 0; i < 3; i++) {
        timer_t id = make(clocks[i], SIGUSR1, 1234 + i);
        check(left_of(id) == 0);
        for (int absolute = 0; absolute < 2; absolute++) {
            uint64_t due = clock_ns(clocks[i]) + 10 * MS;
            set(id, absolute ? TIMER_ABSTIME : 0, absolute ? due : 10 * MS, 0);
            check(left_of(id) <= 10 * MS);
            check(sigwaitinfo(&set10, &info) == SIGUSR1);
            check(clock_ns(clocks[i]) >= due);
            check(info.si_code == SI_TIMER && info.si_overrun == 0);
            check(info.si_value.sival_int == 1234 + i);
            check(left_of(id) == 0);
        }
        set(id, TIMER_ABSTIME, 1, 0); // long ago
        check(sigwaitinfo(&set10, &info) == SIGUSR1);
        set(id, 0, 3 * MS, 0); // then disarmed
        set(id, 0, 0, 0);
        sigtimedwait(&set10, NULL, &(struct timespec){ 0, 0 }); // if too late
        check_error(sigtimedwait(&set10, NULL, &(struct timespec){ 0, 8 * MS }),
                    EAGAIN);
        check(timer_delete(id) == 0);
        check_error(syscall(SYS_timer_delete, id), EINVAL);
    }
    ok("timers expire");
}

static void periods_and_overruns(void)
{
    sigset_t set10 = only(SIGUSR1);
    timer_t id = make(CLOCK_MONOTONIC, SIGUSR1, 0);
    uint64_t start = now_ns();
    unsigned all = 0;

    set(id, 0, 5 * MS, 5 * MS);
    for (int i = 0; i < 8; i++) {
        siginfo_t info;
        if (i % 2)
            sleep_ms(12); // misses some
        check(sigwaitinfo(&set10, &info) == SIGUSR1);
        all += 1 + timer_getoverrun(id);
    }
    uint64_t passed = now_ns() - start;
    check(passed >= 8 * 5 * MS);
    check(all <= passed / (5 * MS) && all > 8);
    uint64_t left = left_of(id);
    check(left > 0 && left <= 5 * MS);

    // The overrun count is that of the signal taken, even if the next ones are
    // due by then.
    set(id, 0, 5 * MS, 5 * MS);
    start = now_ns();
    all = 0;
    for (int i = 0; i < 4; i++) {
        siginfo_t taken;
        check(sigwaitinfo(&set10, &taken) == SIGUSR1);
        sleep_ms(12);
        all += 1 + timer_getoverrun(id);
    }
    check(all <= (now_ns() - start) / (5 * MS));
    check(all >= 7); // the last three had two periods each, or more

    // A period too short to serve: expirations are counted, none before it is
    // due, and the machine keeps running.
    start = now_ns();
    set(id, 0, 1, 1);
    sleep_ms(5);
    siginfo_t info;
    check(sigwaitinfo(&set10, &info) == SIGUSR1);
    check((unsigned)timer_getoverrun(id) < now_ns() - start);
    sleep_ms(5);
    check(timer_getoverrun(id) > 1000);
    check(timer_delete(id) == 0);
    sigtimedwait(&set10, NULL, &(struct timespec){ 0, 0 }); // its last one
    ok("periods and overruns");
}

static void *wait_for_own(void *arg)
{
    sigset_t set12 = only(SIGUSR2);
    siginfo_t info;
    timer_t id;
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
                              .sigev_signo = SIGUSR2 };
    (void)arg;
    event.sigev_notify_thread_id = syscall(SYS_gettid);
    check(sigprocmask(SIG_BLOCK, &set12, NULL) == 0);
    check(timer_create(CLOCK_MONOTONIC, &event, &id) == 0);
    set(id, 0, 2 * MS, 0);
    check(sigwaitinfo(&set12, &info) == SIGUSR2 && info.si_code == SI_TIMER);
    return NULL; // the timer still exists
}

static volatile int notified;

static void notify(union sigval value)
{
    notified = value.sival_int;
}

static void to_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        check(pthread_create(&threads[i], NULL, wait_for_own, NULL) == 0);
    for (int i = 0; i < 4; i++)
        check(pthread_join(threads[i], NULL) == 0);

    timer_t id; // the C library starts a thread
    struct sigevent event = { .sigev_notify = SIGEV_THREAD,
                              .sigev_notify_function = notify,
                              .sigev_value.sival_int = 99 };
    check(timer_create(CLOCK_MONOTONIC, &event, &id) == 0);
    set(id, 0, 2 * MS, 0);
    while (notified != 99)
        sleep_ms(1);
    check(timer_delete(id) == 0);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR2;
    event.sigev_notify_thread_id = 1; // another task's thread
    check_error(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id),
                EINVAL);
    ok("timers of threads");
}

static void on_cpu_time(void)
{
    static const clockid_t clocks[] = { CLOCK_PROCESS_CPUTIME_ID,
                                        CLOCK_THREAD_CPUTIME_ID };
    on_signal(SIGUSR2, count_call, SA_RESTART);
    for (int i = 0; i < 2; i++) {
        watched = clocks[i];
        timer_t id = make(watched, SIGUSR2, 0);
        calls = 0;
        uint64_t start = clock_ns(watched);
        set(id, 0, 10 * MS, 10 * MS);
        sleep_ms(30);
        // (A busy host may add CPU time.)
        check(calls == 0 || clock_ns(watched) - start >= 10 * MS);
        while (calls < 4)
            ;
        check(first_call - start >= 10 * MS);
        check(clock_ns(watched) - start >= 40 * MS);
        check(timer_delete(id) == 0);
    }
    ok("timers of CPU time");
}

static void bad_timers(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL };
    struct itimerspec s = { { 0, 0 }, { 0, 1 } };
    timer_t id;
    int raw;

    check_error(timer_create(77, NULL, &id), EINVAL);
    check_error(timer_create(CLOCK_MONOTONIC, &event, &id), EINVAL);
    event.sigev_signo = 65;
    check_error(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &raw),
                EINVAL);
    event.sigev_signo = SIGUSR1;
    event.sigev_notify = 17;
    check_error(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &raw),
                EINVAL);
    check_error(syscall(SYS_timer_create, CLOCK_MONOTONIC, NULL, 8), EFAULT);
    check_error(syscall(SYS_timer_create, CLOCK_MONOTONIC, 8, &raw), EFAULT);
    check_error(syscall(SYS_timer_delete, 12345678), EINVAL);
    check_error(syscall(SYS_timer_delete, -1), EINVAL);
    check_error(syscall(SYS_timer_getoverrun, -1), EINVAL);
    check_error(syscall(SYS_timer_settime64, -1, 0, &s, NULL), EINVAL);

    id = make(CLOCK_MONOTONIC, SIGUSR1, 0);
    s.it_value.tv_nsec = 1000000000;
    check_error(timer_settime(id, 0, &s, NULL), EINVAL);
    s.it_value = (struct timespec){ -1, 0 };
    check_error(timer_settime(id, 0, &s, NULL), EINVAL);
    s.it_value = (struct timespec){ 1, 0 };
    s.it_interval.tv_nsec = -1;
    check_error(timer_settime(id, 0, &s, NULL), EINVAL);
    check_error(timer_gettime(id, (void *)8), EFAULT);
    s = (struct itimerspec){ { INT_MAX, 999999999 }, { INT_MAX, 999999999 } };
    check(timer_settime(id, 0, &s, NULL) == 0);
    check(left_of(id) > SEC * 2000000000);
    check(timer_delete(id) == 0);
    ok("bad timers are refused");
}

// --- many, and the end ------------------------------------------------------

#define MANY 1000

// Longer than a kernel with checkers may take on a slow host.
#define HOURS 10000

static void make_many(void)
{
    for (int i = 0; i < MANY; i++) {
        timer_t id = make(i % 3 ? CLOCK_MONOTONIC : CLOCK_REALTIME, SIGUSR2, i);
        set(id, i % 5 ? 0 : TIMER_ABSTIME,
            i % 2 ? 50 * MS + i : (1ull << 60) + i, i % 4 ? 0 : 300 * i);
    }
    check(setitimer(ITIMER_REAL,
                    &(struct itimerval){ { 0, 1000 }, { HOURS, 0 } },
                    NULL) == 0);
}

static void exit_with_many(void)
{
    signal(SIGUSR2, SIG_IGN);
    make_many();
    _exit(3);
}

static void exec_with_many(void)
{
    signal(SIGUSR2, SIG_IGN);
    make_many();
    execl("/proc/self/exe", "timers", "exec", NULL);
    _exit(1);
}

static void killed_with_many(void)
{
    signal(SIGUSR2, SIG_IGN);
    make_many();
    pause();
}

static void many(void)
{
    for (int i = 0; i < 3; i++) {
        int status;
        check(exited_with(in_child(exit_with_many), 3));
        check(exited_with(in_child(exec_with_many), 4));
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0)
            killed_with_many();
        sleep_ms(10 + i * 30);
        check(kill(pid, SIGKILL) == 0);
        check(waitpid(pid, &status, 0) == pid);
        check(killed_by(status, SIGKILL));
    }
    ok("the end of processes with many timers");
}

static void not_in_the_child(void)
{
    struct itimerval left;
    struct itimerspec s;
    check(getitimer(ITIMER_REAL, &left) == 0 && left.it_value.tv_sec == 0);
    for (int i = 0; i < 4; i++)
        check_error(syscall(SYS_timer_gettime64, i, &s), EINVAL);
}

static void fork_leaves_them(void)
{
    timer_t id = make(CLOCK_MONOTONIC, SIGUSR1, 0);
    set(id, 0, 100 * SEC, 0);
    alarm(TEST_SECONDS);
    check(exited_with(in_child(not_in_the_child), 0));
    check(left_of(id) > 0);
    check(timer_delete(id) == 0);
    ok("children have no timers");
}

// Setting the clock affects absolute timers, not relative ones.
static void wall_timers(void)
{
    sigset_t set10 = only(SIGUSR1);
    siginfo_t info;
    if (!on_strobe())
        return;
    timer_t at = make(CLOCK_REALTIME, SIGUSR1, 1);
    timer_t span = make(CLOCK_REALTIME, SIGUSR1, 2);
    uint64_t now = clock_ns(CLOCK_REALTIME);
    set(at, TIMER_ABSTIME, now + 3600 * SEC, 0);
    set(span, 0, 3600 * SEC, 0);
    check_error(sigtimedwait(&set10, NULL, &(struct timespec){ 0, 10 * MS }),
                EAGAIN);
    struct timespec t = spec(now + 3601 * SEC);
    check(clock_settime(CLOCK_REALTIME, &t) == 0);
    check(sigwaitinfo(&set10, &info) == SIGUSR1);
    check(info.si_value.sival_int == 1);
    check(left_of(at) == 0 && left_of(span) > 3590 * SEC);
    t = spec(now);
    check(clock_settime(CLOCK_REALTIME, &t) == 0);
    check(timer_delete(at) == 0 && timer_delete(span) == 0);
    ok("timers follow the wall clock");
}

// So late that the sum with the clock's time overflows a signed number.
static void far_timers(void)
{
    const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME };
    for (int i = 0; i < 2; i++) {
        timer_t id = make(clocks[i], SIGUSR1, 0);
        struct itimerspec s = { { 1, 0 }, { INT64_MAX, 0 } };
        check(timer_settime(id, 0, &s, NULL) == 0);
        check(left_of(id) > INT64_MAX / 2);
        check(timer_delete(id) == 0);
    }
    ok("timers that never expire");
}

// SIGEV_NONE: the timer sends nothing, so it has no overruns, even when the
// clock is set beyond its time.
static void silent_timer(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_NONE };
    struct timespec now;
    timer_t id;

    if (!on_strobe())
        return;
    check(timer_create(CLOCK_REALTIME, &event, &id) == 0);
    check(timer_getoverrun(id) == 0);
    check(clock_gettime(CLOCK_REALTIME, &now) == 0);
    struct itimerspec s = { .it_value = { now.tv_sec + 1000, 0 } };
    check(timer_settime(id, TIMER_ABSTIME, &s, NULL) == 0);
    now.tv_sec += 2000;
    check(clock_settime(CLOCK_REALTIME, &now) == 0);
    sleep_ms(5);
    check(left_of(id) == 0 && timer_getoverrun(id) == 0);
    now.tv_sec -= 2000;
    check(clock_settime(CLOCK_REALTIME, &now) == 0);
    check(left_of(id) > 0);
    check(timer_delete(id) == 0);
    ok("a timer that sends nothing");
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "exec")) {
        struct itimerval left; // setitimer's timer survives exec
        struct itimerspec s;
        check(getitimer(ITIMER_REAL, &left) == 0);
        check(left.it_value.tv_sec > HOURS / 2);
        check_error(syscall(SYS_timer_gettime64, 0, &s), EINVAL);
        return 4;
    }
    alarm(TEST_SECONDS);
    timers_expire();
    periods_and_overruns();
    to_threads();
    on_cpu_time();
    bad_timers();
    many();
    fork_leaves_them();
    wall_timers();
    far_timers();
    silent_timer();
    return 0;
}
