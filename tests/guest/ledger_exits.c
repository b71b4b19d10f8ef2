// No cycles are lost at exit: a dead thread's go to its task, a dead task's to
// its parent; wait4, getrusage, times and system.tasks agree.
#include "test.h"

#include "user/libstrobe/sysinfo.h"

#include <inttypes.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/times.h>

#define US_PER_SECOND 1000000ll
#define TICKS 100 // per second, times(2)

static bool strobe;

static int64_t us(struct timeval t)
{
    return t.tv_sec * US_PER_SECOND + t.tv_usec;
}

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec t;

    check(clock_gettime(clock, &t) == 0);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void use_cpu(unsigned ms)
{
    uint64_t end = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000ull;

    while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
        for (volatile int i = 0; i < 1000; i++)
            ;
    }
}

static void *busy_thread(void *ms)
{
    use_cpu((unsigned)(uintptr_t)ms);
    return NULL;
}

static void run_threads(int count, unsigned ms)
{
    for (int i = 0; i < count; i++) {
        pthread_t t;
        check(pthread_create(&t, NULL, busy_thread, (void *)(uintptr_t)ms) ==
              0);
        check(pthread_join(t, NULL) == 0);
    }
}

static void threads(void)
{
    uint64_t before = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);

    run_threads(5, 10);
    uint64_t used = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - before;
    check(used >= 5 * 10 * 1000000ull);
    ok("a dead thread's cycles are its task's");
}

static struct sysinfo_task task(pid_t pid)
{
    char path[SYSINFO_PATH_MAX];
    struct sysinfo_task t;

    snprintf(path, sizeof(path), "system.tasks.%d", (int)pid);
    check(sysinfo_get_task(path, &t) == 0);
    return t;
}

// A child with threads and children of its own, all of them gone when it ends.
static void family(void)
{
    use_cpu(20);
    run_threads(2, 10);
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0) {
            run_threads(1, 5);
            use_cpu(10);
            _exit(0);
        }
        check(waitpid(pid, NULL, 0) == pid);
    }
}

static int64_t cycles_us(uint64_t cycles)
{
    static uint64_t hz;

    if (hz == 0)
        hz = sysinfo_frequency();
    return cycles / hz * US_PER_SECOND + cycles % hz * US_PER_SECOND / hz;
}

static void tasks(void)
{
    struct rusage before, after, child;
    struct tms ticks, ticks_after;
    siginfo_t info;

    check(getrusage(RUSAGE_CHILDREN, &before) == 0);
    check(times(&ticks) != (clock_t)-1);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        family();
        _exit(0);
    }
    check(waitid(P_PID, pid, &info, WEXITED | WNOWAIT) == 0);
    struct sysinfo_task zombie = { 0 };
    if (strobe)
        zombie = task(pid);
    check(wait4(pid, NULL, 0, &child) == pid);
    check(getrusage(RUSAGE_CHILDREN, &after) == 0);
    check(times(&ticks_after) != (clock_t)-1);

    int64_t user = us(child.ru_utime), system = us(child.ru_stime);
    int64_t grown_user = us(after.ru_utime) - us(before.ru_utime);
    int64_t grown_system = us(after.ru_stime) - us(before.ru_stime);
    dprintf(1, "# the family used %" PRId64 " us user, %" PRId64 " us system\n",
            user, system);
    // At least 20 + 2 * 10 + 3 * (5 + 10) ms; a thread's time counts from its
    // first reading of the clock.
    check(user + system >= 85000);
    check(grown_user >= user - 1 && grown_user <= user + 1);
    check(grown_system >= system - 1 && grown_system <= system + 1);
    check(labs((long)(ticks_after.tms_cutime - ticks.tms_cutime -
                      user * TICKS / US_PER_SECOND)) <= 1);
    check(labs((long)(ticks_after.tms_cstime - ticks.tms_cstime -
                      system * TICKS / US_PER_SECOND)) <= 1);
    if (strobe) { // a zombie's counters are final
        check(zombie.state == SYSINFO_ZOMBIE);
        check(cycles_us(zombie.user + zombie.child_user) == user);
        check(cycles_us(zombie.kernel + zombie.child_kernel) == system);
        check(cycles_us(zombie.user + zombie.kernel) >= 40000);
        check(cycles_us(zombie.child_user + zombie.child_kernel) >= 45000);
    }
    ok("a dead task's cycles are its parent's");
}

int main(void)
{
    alarm(TEST_SECONDS);
    strobe = sysinfo_get_type("system.tasks") >= 0;
    threads();
    tasks();
    return 0;
}
