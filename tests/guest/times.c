// Clocks, sleeping, timers, the CPU time of a process.
#include "spans.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>

// The clock never runs backwards, on every CPU in turn.
static void monotonic(void)
{
    cpu_set_t all, one;
    uint64_t last = 0;

    check(sched_getaffinity(0, sizeof(all), &all) == 0);
    for (int round = 0; round < 20; round++) {
        for (int cpu = 0; cpu < 32; cpu++) {
            if (!CPU_ISSET(cpu, &all))
                continue;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            check(sched_setaffinity(0, sizeof(one), &one) == 0);
            for (int i = 0; i < 50; i++) {
                uint64_t now = clock_ns(CLOCK_MONOTONIC);
                check(now >= last);
                last = now;
            }
        }
    }
    check(sched_setaffinity(0, sizeof(all), &all) == 0);
    ok("the clock does not run backwards");
}

static void clocks_agree(void)
{
    struct timeval tv;
    struct timespec resolution;
    uint64_t before = clock_ns(CLOCK_REALTIME);

    check(gettimeofday(&tv, NULL) == 0);
    uint64_t day = tv.tv_sec * 1000000000ull + tv.tv_usec * 1000ull;
    check(day + 1000 >= before && day <= clock_ns(CLOCK_REALTIME));
    time_t now = time(NULL);
    check(now >= tv.tv_sec);
    check((uint64_t)now * SEC <= clock_ns(CLOCK_REALTIME));
    check(now > 1700000000); // a sane date
    check(clock_getres(CLOCK_MONOTONIC, &resolution) == 0);
    check(resolution.tv_sec == 0 && resolution.tv_nsec > 0);
    check_error(clock_gettime(77, &resolution), EINVAL);
    check_error(clock_getres(77, &resolution), EINVAL);
    ok("clocks agree");
}

static void sleeping(void)
{
    struct timespec t = { 0, 20 * MS }, left;
    uint64_t start = now_ns();

    check(nanosleep(&t, NULL) == 0);
    check(now_ns() - start >= 20 * MS);
    t.tv_nsec = 0;
    check(nanosleep(&t, NULL) == 0);
    t.tv_nsec = 1000000000;
    check_error(nanosleep(&t, NULL), EINVAL);
    t.tv_nsec = -1;
    check_error(nanosleep(&t, NULL), EINVAL);
    t = (struct timespec){ -1, 0 };
    check_error(nanosleep(&t, NULL), EINVAL);

    start = now_ns() + 30 * MS;
    t = (struct timespec){ start / 1000000000, start % 1000000000 };
    check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == 0);
    check(now_ns() >= start);
    check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == 0);
    uint64_t wall = clock_ns(CLOCK_REALTIME) + 20 * MS;
    t = (struct timespec){ wall / 1000000000, wall % 1000000000 };
    check(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == 0);
    check(clock_ns(CLOCK_REALTIME) >= wall);
    check(clock_nanosleep(77, 0, &t, &left) == EINVAL);
    ok("sleeping");
}

static volatile int alarms;

static void on_alarm(int signal)
{
    (void)signal;
    alarms++;
}

static void timers(void)
{
    struct itimerval timer = { { 0, 10000 }, { 0, 10000 } }, old;

    on_signal(SIGALRM, on_alarm, 0);
    alarm(0);
    check(alarm(100) == 0);
    check(alarm(50) >= 90);
    check(getitimer(ITIMER_REAL, &old) == 0);
    check(old.it_value.tv_sec >= 40 && old.it_value.tv_sec <= 50);
    check(old.it_interval.tv_sec == 0 && old.it_interval.tv_usec == 0);
    uint64_t start = now_ns();
    check(setitimer(ITIMER_REAL, &timer, &old) == 0);
    check(old.it_value.tv_sec >= 30);
    while (alarms < 5)
        pause();
    check(now_ns() - start >= 50 * MS);
    timer = (struct itimerval){ 0 };
    check(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    int seen = alarms;
    sleep_ms(30);
    check(alarms == seen);
    timer.it_value.tv_usec = 1000000;
    check_error(setitimer(ITIMER_REAL, &timer, NULL), EINVAL);
    check_error(setitimer(9, &timer, NULL), EINVAL);

    alarms = 0;
    start = now_ns();
    check(alarm(1) == 0);
    while (alarms == 0)
        sleep_ms(1);
    check(alarms == 1 && now_ns() - start >= SEC);
    alarm(TEST_SECONDS);
    on_signal(SIGALRM, SIG_DFL, 0);
    ok("alarm and setitimer");
}

// The CPU time of a 100 ms sleep. (The best of several: it grows if the host
// stops a CPU that goes to sleep or wakes up.)
static uint64_t cpu_time_of_sleep(void)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 50 && best >= 50 * MS; i++) {
        uint64_t start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        sleep_ms(100);
        uint64_t used = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
        best = used < best ? used : best;
    }
    return best;
}

static void cpu_time(void)
{
    struct rusage before, after, children;
    struct tms t;
    uint64_t thread = clock_ns(CLOCK_THREAD_CPUTIME_ID);

    check(getrusage(RUSAGE_SELF, &before) == 0);
    use_cpu(50 * MS);
    check(clock_ns(CLOCK_THREAD_CPUTIME_ID) - thread >= 45 * MS);
    check(getrusage(RUSAGE_SELF, &after) == 0);
    int64_t used =
        (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000ll +
        after.ru_utime.tv_usec - before.ru_utime.tv_usec +
        (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000ll +
        after.ru_stime.tv_usec - before.ru_stime.tv_usec;
    check(used >= 30000);

    check(cpu_time_of_sleep() < 50 * MS);

    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        use_cpu(50 * MS);
        _exit(0);
    }
    check(wait4(pid, NULL, 0, &children) == pid);
    check(children.ru_utime.tv_usec + children.ru_stime.tv_usec >= 30000 ||
          children.ru_utime.tv_sec + children.ru_stime.tv_sec > 0);
    check(getrusage(RUSAGE_CHILDREN, &children) == 0);
    check(children.ru_utime.tv_usec + children.ru_stime.tv_usec >= 30000 ||
          children.ru_utime.tv_sec + children.ru_stime.tv_sec > 0);
    check(times(&t) != (clock_t)-1);
    check(t.tms_utime + t.tms_stime >= 3);
    check(t.tms_cutime + t.tms_cstime >= 3);
    check_error(getrusage(77, &after), EINVAL);
    ok("CPU time");
}

int main(void)
{
    alarm(TEST_SECONDS);
    monotonic();
    clocks_agree();
    sleeping();
    timers();
    cpu_time();
    return 0;
}
