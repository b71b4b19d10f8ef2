// Accuracy of sleeps and timers: the greatest lateness of each kind, in
// nanoseconds. Meaningful only under `tools/vm --icount`, where it repeats
// (tests/system/test_sleep.py).
#include "test.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define ROUNDS 10

static struct timespec spec(uint64_t ns)
{
    return (struct timespec){ ns / 1000000000, ns % 1000000000 };
}

static void by_nanosleep(uint64_t ns)
{
    struct timespec t = spec(ns);
    check(nanosleep(&t, NULL) == 0);
}

static void by_deadline(uint64_t ns)
{
    struct timespec t = spec(now_ns() + ns);
    check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == 0);
}

static void by_ppoll(uint64_t ns)
{
    struct timespec t = spec(ns);
    check(ppoll(NULL, 0, &t, NULL) == 0);
}

static void by_pselect(uint64_t ns)
{
    struct timespec t = spec(ns);
    check(pselect(0, NULL, NULL, NULL, &t, NULL) == 0);
}

static void by_futex(uint64_t ns)
{
    int32_t t[2] = { ns / 1000000000, ns % 1000000000 };
    int word = 0;
    check_error(syscall(SYS_futex, &word, FUTEX_WAIT, 0, t), ETIMEDOUT);
}

static void by_sigtimedwait(uint64_t ns)
{
    struct timespec t = spec(ns);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    check_error(sigtimedwait(&set, NULL, &t), EAGAIN);
}

static const struct {
    const char *name;
    void (*wait)(uint64_t ns);
} kinds[] = {
    { "nanosleep", by_nanosleep }, { "deadline", by_deadline },
    { "ppoll", by_ppoll },         { "pselect", by_pselect },
    { "futex", by_futex },         { "sigtimedwait", by_sigtimedwait },
};

static void sleeps(void)
{
    static const uint64_t spans[] = { 1000, 50000, 333333, 7654321 };
    for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        for (unsigned s = 0; s < 4; s++) {
            uint64_t worst = 0;
            kinds[k].wait(spans[s]); // faults its pages in
            for (int i = 0; i < ROUNDS; i++) {
                uint64_t start = now_ns();
                kinds[k].wait(spans[s]);
                uint64_t late = now_ns() - start - spans[s];
                check(late < 1ull << 63); // never short
                worst = late > worst ? late : worst;
            }
            printf("late %s %u %u\n", kinds[k].name, (unsigned)spans[s],
                   (unsigned)worst);
        }
    }
}

// --- CPU time ---------------------------------------------------------------

static uint64_t cpu_ns(void)
{
    struct timespec t;
    check(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static volatile uint64_t called;

static void on_call(int signal)
{
    (void)signal;
    called = cpu_ns();
}

// ITIMER_PROF expires when the process has used that much CPU time.
static void cpu_timer(void)
{
    struct itimerval timer = { { 0, 0 }, { 0, 20000 } };
    uint64_t worst = 0;
    on_signal(SIGPROF, on_call, 0);
    for (int i = 0; i < ROUNDS; i++) {
        called = 0;
        uint64_t start = cpu_ns();
        check(setitimer(ITIMER_PROF, &timer, NULL) == 0);
        sleep_ms(3); // sleeping does not count
        while (!called)
            ;
        uint64_t late = called - start - 20000000;
        // Linux samples CPU time by ticks.
        worst = late > worst && late < 1ull << 63 ? late : worst;
    }
    printf("late cpu-timer 20000000 %u\n", (unsigned)worst);
}

int main(int argc, char **argv)
{
    alarm(TEST_SECONDS);
    if (argc == 3 && !strcmp(argv[1], "spin")) {
        uint64_t end = now_ns() + atoll(argv[2]);
        while (now_ns() < end)
            ;
        return 0;
    }
    sleeps();
    cpu_timer();
    fflush(stdout);
    ok("no sleep is short");
    return 0;
}
