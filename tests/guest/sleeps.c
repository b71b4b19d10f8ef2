// Sleeps and waits with time-outs: never short, hostile times, signals, stops,
// a wall clock that is set, death during a sleep.
#include "spans.h"

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>

// The kernel's structures, with 32 and 64 bits of seconds.
struct spec32 {
    int32_t sec, nsec;
};
struct spec64 {
    int64_t sec, nsec;
};

// --- how long ---------------------------------------------------------------

static void never_short(void)
{
    static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC,
                                        CLOCK_BOOTTIME };
    static const uint64_t spans[] = { 0, 1, 999, 50000, 333333, 3 * MS };
    for (int c = 0; c < 3; c++) {
        for (int s = 0; s < 6; s++) {
            struct timespec t = spec(spans[s]);
            uint64_t start = now_ns();
            check(clock_nanosleep(clocks[c], 0, &t, NULL) == 0);
            check(now_ns() - start >= spans[s]);

            uint64_t until = clock_ns(clocks[c]) + spans[s];
            t = spec(until);
            check(clock_nanosleep(clocks[c], TIMER_ABSTIME, &t, NULL) == 0);
            check(clock_ns(clocks[c]) >= until);
        }
    }
    ok("sleeps are never short");
}

static void hostile_times(void)
{
    static const struct timespec bad[] = { { -1, 0 },         { 0, -1 },
                                           { 0, 1000000000 }, { 5, INT_MAX },
                                           { INT_MIN, 0 },    { 0, INT_MIN } };
    struct timespec t;
    fd_set none;
    sigset_t set;

    FD_ZERO(&none);
    sigemptyset(&set);
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        t = bad[i];
        check_error(nanosleep(&t, NULL), EINVAL);
        check(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL) == EINVAL);
        check(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) ==
              EINVAL);
        check_error(ppoll(NULL, 0, &t, NULL), EINVAL);
        check_error(pselect(0, &none, NULL, NULL, &t, NULL), EINVAL);
        check_error(sigtimedwait(&set, NULL, &t), EINVAL);
        struct spec32 narrow = { (int32_t)t.tv_sec, t.tv_nsec };
        int word = 0;
        check_error(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &narrow), EINVAL);
        check_error(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, &narrow, 0,
                            FUTEX_BITSET_MATCH_ANY),
                    EINVAL);
    }
    t = (struct timespec){ 0, 1 };
    check(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &t, NULL) == EINVAL);
    check(clock_nanosleep(CLOCK_MONOTONIC_RAW, 0, &t, NULL) == ENOTSUP);
    check(clock_nanosleep(CLOCK_MONOTONIC_COARSE, 0, &t, NULL) == ENOTSUP);
    check(clock_nanosleep(77, 0, &t, NULL) == EINVAL);
    check_error(syscall(SYS_nanosleep, 8, NULL), EFAULT);
    check_error(syscall(SYS_nanosleep, NULL, NULL), EFAULT);

    // select accepts more than a second in microseconds.
    uint64_t start = now_ns();
    check(syscall(SYS__newselect, 0, NULL, NULL, NULL,
                  (int32_t[]){ 0, 1015000 }) == 0);
    check(now_ns() - start >= 1015 * MS);
    check_error(
        syscall(SYS__newselect, 0, NULL, NULL, NULL, (int32_t[]){ -1, 0 }),
        EINVAL);
    ok("impossible times are refused");
}

static void nothing(int signal)
{
    (void)signal;
}

// A periodic timer: on a busy host its first signal may arrive before the sleep
// begins.
static void alarms_each_us(unsigned us)
{
    struct itimerval timer = { { 0, us }, { 0, us } };
    check(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

// Seconds out of range mean for ever: only a signal ends the sleep.
static void for_ever(void)
{
    static struct spec64 ages[] = { { INT64_MAX, 999999999 },
                                    { INT64_MAX / 2, 0 },
                                    { 10000000000, 0 },
                                    { 1ll << 33, 0 } };
    static struct spec32 narrow = { INT_MAX, 999999999 };
    int word = 0;

    on_signal(SIGALRM, nothing, 0);
    for (int i = 0; i < 4; i++) {
        for (int absolute = 0; absolute < 2; absolute++) {
            for (int clock = 0; clock < 2; clock++) {
                alarms_each_us(3000);
                check_error(syscall(SYS_clock_nanosleep_time64, clock, absolute,
                                    &ages[i], NULL),
                            EINTR);
            }
        }
        alarms_each_us(3000);
        check_error(syscall(SYS_futex_time64, &word, FUTEX_WAIT, 0, &ages[i]),
                    EINTR);
        alarms_each_us(3000);
        check_error(syscall(SYS_ppoll_time64, NULL, 0, &ages[i], NULL, 8),
                    EINTR);
    }
    alarms_each_us(3000);
    check_error(syscall(SYS_nanosleep, &narrow, NULL), EINTR);
    ok("a very long time is for ever");
}

// --- signals and stops ------------------------------------------------------

static void remaining_time(void)
{
    struct timespec t = { 100, 0 }, left = { 7, 7 };

    alarms_each_us(20000);
    check_error(nanosleep(&t, &left), EINTR);
    check(left.tv_sec > 0 && left.tv_sec < 100);
    t = spec(now_ns() + 100 * SEC);
    left = (struct timespec){ 7, 7 };
    alarms_each_us(3000);
    check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, &left) == EINTR);
    check(left.tv_sec == 7 && left.tv_nsec == 7); // not written if absolute
    alarm(TEST_SECONDS);
    on_signal(SIGALRM, SIG_DFL, 0);
    ok("the rest of an interrupted sleep");
}

static volatile int kind;

static void sleep_some_way(void)
{
    uint64_t start = now_ns(), span = 60 * MS;
    struct timespec t = spec(span), at = spec(start + span);
    int word = 0;

    switch (kind) {
    case 0:
        check(nanosleep(&t, NULL) == 0);
        break;
    case 1:
        check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == 0);
        break;
    case 2:
        at = spec(clock_ns(CLOCK_REALTIME) + span);
        check(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL) == 0);
        break;
    case 3:
        check(poll(NULL, 0, 60) == 0);
        break;
    case 4:
        check(select(0, NULL, NULL, NULL, &(struct timeval){ 0, 60000 }) == 0);
        break;
    case 5:
        check_error(syscall(SYS_futex, &word, FUTEX_WAIT, 0,
                            &(struct spec32){ 0, 60 * MS }),
                    ETIMEDOUT);
        break;
    case 6:
        check_error(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0,
                            &(struct spec32){ at.tv_sec, at.tv_nsec }, 0,
                            FUTEX_BITSET_MATCH_ANY),
                    ETIMEDOUT);
        break;
    }
    uint64_t slept = now_ns() - start;
    check(slept >= span);
    check(slept < 30 * SEC); // no restart at each stop
}

// Stops and continues sleepers repeatedly, and sends signals that they ignore.
static void restarted(void)
{
    for (kind = 0; kind <= 6; kind++) {
        int status;
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0) {
            sleep_some_way();
            _exit(0);
        }
        for (int i = 0; i < 10; i++) {
            sleep_ms(2);
            check(kill(pid, SIGSTOP) == 0);
            check(kill(pid, SIGCONT) == 0);
            check(kill(pid, SIGWINCH) == 0);
        }
        check(waitpid(pid, &status, 0) == pid);
        check(exited_with(status, 0));
    }
    ok("a stop does not end a sleep, nor make it longer");
}

// --- a wall clock that is set -----------------------------------------------

static void set_wall(uint64_t ns)
{
    struct timespec t = spec(ns);
    check(clock_settime(CLOCK_REALTIME, &t) == 0);
}

static uint64_t awake_at; // uptime

static void *sleep_until_wall(void *arg)
{
    struct timespec t = spec(*(uint64_t *)arg);
    check(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == 0);
    check(clock_ns(CLOCK_REALTIME) >= *(uint64_t *)arg);
    __atomic_store_n(&awake_at, now_ns(), __ATOMIC_SEQ_CST);
    return NULL;
}

static void *wait_until_wall(void *arg)
{
    uint64_t at = *(uint64_t *)arg;
    struct spec64 t = { at / SEC, at % SEC };
    int word = 0;
    check_error(syscall(SYS_futex_time64, &word,
                        FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &t, 0,
                        FUTEX_BITSET_MATCH_ANY),
                ETIMEDOUT);
    check(clock_ns(CLOCK_REALTIME) >= at);
    __atomic_store_n(&awake_at, now_ns(), __ATOMIC_SEQ_CST);
    return NULL;
}

// Sleeps for 100 ms while the clock is set back by 200 ms: 300 ms in total.
// False if the sleep ended before the clock was set.
static bool set_back_in_sleep(void *(*wait)(void *))
{
    pthread_t thread;
    uint64_t began = now_ns(), at = clock_ns(CLOCK_REALTIME) + 100 * MS;
    check(pthread_create(&thread, NULL, wait, &at) == 0);
    sleep_ms(10);
    uint64_t up = now_ns(), wall = clock_ns(CLOCK_REALTIME);
    set_wall(wall - 200 * MS);
    bool in_time = wall + (now_ns() - up) < at;
    check(pthread_join(thread, NULL) == 0);
    check(!in_time || awake_at - began >= 295 * MS);
    return in_time;
}

static void wall_clock_is_set(void)
{
    if (!on_strobe()) // leaves other clocks alone
        return;
    void *(*waits[])(void *) = { sleep_until_wall, wait_until_wall };
    for (int i = 0; i < 2; i++) {
        // An hour away; then the clock is set beyond it.
        pthread_t thread;
        uint64_t start = clock_ns(CLOCK_REALTIME), at = start + 3600 * SEC;
        awake_at = 0;
        check(pthread_create(&thread, NULL, waits[i], &at) == 0);
        sleep_ms(20);
        check(!__atomic_load_n(&awake_at, __ATOMIC_SEQ_CST));
        set_wall(at - 600 * SEC);
        sleep_ms(20);
        check(!__atomic_load_n(&awake_at, __ATOMIC_SEQ_CST));
        set_wall(at + 1);
        check(pthread_join(thread, NULL) == 0);

        while (!set_back_in_sleep(waits[i]))
            ; // too late, on a busy host
        set_wall(start);
    }
    ok("sleeps until a wall clock time follow the clock");
}

// --- death ------------------------------------------------------------------

#define SLEEPERS 60

static void *sleep_long(void *arg)
{
    int n = (int)(intptr_t)arg, word = 0;
    struct timespec t = { 1000 + n, n };
    switch (n % 4) {
    case 0:
        nanosleep(&t, NULL);
        break;
    case 1:
        poll(NULL, 0, 1000000);
        break;
    case 2:
        syscall(SYS_futex, &word, FUTEX_WAIT, 0, &(struct spec32){ 1000, 0 });
        break;
    default:
        t.tv_sec += time(NULL);
        clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
    }
    return NULL;
}

static void start_sleepers(void)
{
    for (int i = 0; i < SLEEPERS; i++) {
        pthread_t thread;
        check(pthread_create(&thread, NULL, sleep_long, (void *)(intptr_t)i) ==
              0);
    }
    alarm(1000);
}

static void exit_among_sleepers(void)
{
    start_sleepers();
    _exit(3);
}

static void exec_among_sleepers(void)
{
    start_sleepers();
    sleep_ms(5);
    execl("/proc/self/exe", "sleeps", "exec", NULL);
    _exit(1);
}

static void sleep_till_killed(void)
{
    start_sleepers();
    sleep_ms(1000000);
}

static void death_in_sleep(void)
{
    for (int i = 0; i < 5; i++) {
        int status;
        check(exited_with(in_child(exit_among_sleepers), 3));
        check(exited_with(in_child(exec_among_sleepers), 4));
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0)
            sleep_till_killed();
        sleep_ms(i * 4);
        check(kill(pid, SIGKILL) == 0);
        check(waitpid(pid, &status, 0) == pid);
        check(killed_by(status, SIGKILL));
    }
    ok("exit, exec and kill among sleepers");
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "exec"))
        return 4;
    alarm(TEST_SECONDS);
    never_short();
    hostile_times();
    restarted();
    for_ever();
    remaining_time();
    wall_clock_is_set();
    death_in_sleep();
    return 0;
}
