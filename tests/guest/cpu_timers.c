// CPU-time timers: setitimer's signals, clock_nanosleep.
#include "spans.h"

#include <pthread.h>
#include <sys/time.h>

static void *burn(void *arg)
{
    while (!__atomic_load_n((int *)arg, __ATOMIC_SEQ_CST))
        ;
    return NULL;
}

static void cpu_itimer(int which, int signal)
{
    struct itimerval timer = { { 0, 0 }, { 0, 30000 } }, left;

    watched = CLOCK_PROCESS_CPUTIME_ID;
    on_signal(signal, count_call, SA_RESTART);
    calls = 0;
    uint64_t start = clock_ns(watched);
    check(setitimer(which, &timer, NULL) == 0);
    sleep_ms(60); // costs no CPU time, unless a busy host adds some
    check(calls == 0 || clock_ns(watched) - start >= 30 * MS);
    check(getitimer(which, &left) == 0);
    check(left.it_value.tv_sec == 0 && left.it_value.tv_usec <= 40000);
    check(left.it_value.tv_usec > 0 || calls);
    while (!calls)
        ;
    // Linux samples user time by ticks.
    check(first_call - start >= (on_strobe() ? 30 : 20) * MS);
    use_cpu(40 * MS);
    check(calls == 1); // one-shot
    check(getitimer(which, &left) == 0);
    check(left.it_value.tv_sec == 0 && left.it_value.tv_usec == 0);

    // Periodic, with two threads: never more signals than the CPU time allows.
    calls = 0;
    timer.it_interval.tv_usec = timer.it_value.tv_usec = 5000;
    int stop = 0;
    pthread_t thread;
    start = clock_ns(watched);
    check(setitimer(which, &timer, NULL) == 0);
    check(pthread_create(&thread, NULL, burn, &stop) == 0);
    while (calls < 10)
        ;
    timer = (struct itimerval){ 0 };
    check(setitimer(which, &timer, &left) == 0);
    check(left.it_interval.tv_usec == 5000);
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    check(pthread_join(thread, NULL) == 0); // it may be in the handler
    int seen = calls;
    check(clock_ns(watched) - start >= seen * (on_strobe() ? 5 : 4) * MS);
    use_cpu(20 * MS);
    check(calls == seen);
    on_signal(signal, SIG_DFL, 0);
}

static void die_of_it(void)
{
    struct itimerval timer = { { 0, 0 }, { 0, 1000 } };
    check(setitimer(ITIMER_VIRTUAL, &timer, NULL) == 0);
    for (;;)
        ;
}

static void cpu_itimers(void)
{
    cpu_itimer(ITIMER_VIRTUAL, SIGVTALRM);
    cpu_itimer(ITIMER_PROF, SIGPROF);
    check(killed_by(in_child(die_of_it), SIGVTALRM));
    ok("setitimer on CPU time");
}

static void sleep_on_cpu_time(void)
{
    int stop = 0;
    pthread_t thread;
    struct timespec t = spec(20 * MS);
    check(pthread_create(&thread, NULL, burn, &stop) == 0);
    uint64_t start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    check(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &t, NULL) == 0);
    check(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start >= 20 * MS);
    uint64_t until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + 20 * MS;
    t = spec(until);
    check(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &t, NULL) ==
          0);
    check(clock_ns(CLOCK_PROCESS_CPUTIME_ID) >= until);
    t = spec(1);
    check(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &t, NULL) ==
          0);
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    check(pthread_join(thread, NULL) == 0);

    // No thread uses CPU time now: only a signal ends the sleep.
    struct timespec left;
    on_signal(SIGALRM, count_call, 0);
    struct itimerval timer = { { 0, 10000 }, { 0, 10000 } };
    check(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    t = spec(5 * SEC);
    check(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &t, &left) == EINTR);
    check(from_spec(&left) > 0 && from_spec(&left) <= 5 * SEC);
    ok("sleeping on CPU time");
}

int main(void)
{
    alarm(TEST_SECONDS);
    cpu_itimers();
    sleep_on_cpu_time();
    return 0;
}
