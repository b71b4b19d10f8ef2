// Time never runs backwards, within a thread or between threads, by vDSO or
// system call, while the clock is set and its rate is changed.
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>

#define SEC 1000000000ll
#define THREADS_MAX 16
#define READS 2000
#define NR_CLOCK_GETTIME64 403

struct timespec64 {
    int64_t sec, nsec;
};

// The latest time that any thread has read, per clock.
static int64_t latest_monotonic, latest_raw;
static int running;

static int64_t ask(int clock, bool by_call)
{
    struct timespec t;
    struct timespec64 wide;
    if (by_call) {
        check(syscall(NR_CLOCK_GETTIME64, clock, &wide) == 0);
        return wide.sec * SEC + wide.nsec;
    }
    check(clock_gettime(clock, &t) == 0);
    return t.tv_sec * SEC + t.tv_nsec;
}

static void tell(int64_t *latest, int64_t now)
{
    int64_t seen = __atomic_load_n(latest, __ATOMIC_ACQUIRE);
    while (now > seen &&
           !__atomic_compare_exchange_n(latest, &seen, now, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
}

static void *reader(void *arg)
{
    bool by_call = (size_t)arg & 1;
    int64_t last = 0, last_raw = 0;
    for (int i = 0; i < READS; i++) {
        int64_t seen = __atomic_load_n(&latest_monotonic, __ATOMIC_ACQUIRE);
        int64_t now = ask(CLOCK_MONOTONIC, by_call ^ (i % 16 == 0));
        check(now >= seen && now >= last);
        tell(&latest_monotonic, now);
        last = now;
        seen = __atomic_load_n(&latest_raw, __ATOMIC_ACQUIRE);
        now = ask(CLOCK_MONOTONIC_RAW, by_call ^ (i % 16 == 1));
        check(now >= seen && now >= last_raw);
        tell(&latest_raw, now);
        last_raw = now;
        check(ask(CLOCK_REALTIME, by_call) > 0);
        if (i % 200 == 0)
            sched_yield();
    }
    __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

// Sets the extreme rates, and moves the wall clock by days.
static void change(unsigned n)
{
    struct timespec day = { 1500000000 + n % 1000 * 86400, n };
    struct timex t = { .modes = ADJ_FREQUENCY | ADJ_TICK,
                       .freq = n & 1 ? 500 << 16 : -500 * 65536,
                       .tick = n & 2 ? 11000 : 9000 };
    struct timeval delta = { 0, n & 4 ? 100 : -100 };
    check(clock_settime(CLOCK_REALTIME, &day) == 0);
    check(adjtimex(&t) >= 0);
    check(adjtime(&delta, NULL) == 0);
}

static void restore(int64_t offset)
{
    struct timex t = { .modes = ADJ_FREQUENCY | ADJ_TICK, .tick = 10000 };
    struct timeval none = { 0, 0 };
    int64_t wall = offset + ask(CLOCK_MONOTONIC, true);
    struct timespec now = { wall / SEC, wall % SEC };
    check(adjtime(&none, NULL) == 0 && adjtimex(&t) >= 0);
    check(clock_settime(CLOCK_REALTIME, &now) == 0);
}

int main(void)
{
    pthread_t threads[THREADS_MAX];
    struct utsname names;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = cpus * 2 > THREADS_MAX ? THREADS_MAX : cpus * 2;
    alarm(TEST_SECONDS);
    check(uname(&names) == 0);
    bool ours = strcmp(names.sysname, "Strobe") == 0;
    int64_t offset = ask(CLOCK_REALTIME, true) - ask(CLOCK_MONOTONIC, true);
    running = count;
    for (size_t i = 0; i < count; i++)
        check(pthread_create(&threads[i], NULL, reader, (void *)i) == 0);
    unsigned changes = 0;
    do {
        if (ours)
            change(changes++);
        sched_yield();
    } while (__atomic_load_n(&running, __ATOMIC_SEQ_CST) > 0);
    for (size_t i = 0; i < count; i++)
        check(pthread_join(threads[i], NULL) == 0);
    if (ours)
        restore(offset);
    ok("no clock runs backwards while it is set and adjusted");
    return 0;
}
