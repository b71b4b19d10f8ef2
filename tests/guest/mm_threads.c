// TLB shootdown: threads change an address space while others use it; no CPU
// may use a stale translation.
//
// Each round waits several times until all CPUs have answered. With more CPUs
// than the host has, an answer takes as long as the host delays that CPU, so
// after a minimum the number of rounds is limited by time.
#include "tests/guest/test.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#define PAGE 4096u
#define THREADS 4u
#define ROUNDS 300u
#define ROUNDS_LEAST 60u
#define STORM_NS 3000000000ull
#define RW (PROT_READ | PROT_WRITE)

static unsigned *page;
static unsigned go, seen[THREADS];
static bool stop;

static uint64_t storm_began;

static bool goes_on(unsigned rounds)
{
    return rounds < ROUNDS_LEAST ||
           (rounds < ROUNDS && now_ns() - storm_began < STORM_NS);
}

// Reads the page as soon as it has changed, and reports the value.
static void *watch(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg, round = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        unsigned now = __atomic_load_n(&go, __ATOMIC_ACQUIRE);
        if (now == round) {
            sched_yield();
            continue;
        }
        round = now;
        check(*(volatile unsigned *)page == now);
        __atomic_store_n(&seen[me], now, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void all_have_seen(unsigned round)
{
    for (unsigned i = 0; i < THREADS; i++) {
        while (__atomic_load_n(&seen[i], __ATOMIC_ACQUIRE) != round)
            sched_yield();
    }
}

// Replaces the page each round: by mapping over it, by moving another one
// there, by copy-on-write.
static void change(unsigned round)
{
    unsigned *other;
    switch (round % 3) {
    case 0:
        check(mmap(page, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                   0) == page);
        *page = round;
        break;
    case 1:
        other = mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *other = round;
        check(mremap(other, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page) ==
              page);
        break;
    default: {
        pid_t pid = fork();
        if (pid == 0) {
            sleep_ms(2);
            _exit(0);
        }
        *page = round;
        check(pid > 0 && waitpid(pid, NULL, 0) == pid);
    }
    }
}

static void test_shootdown(void)
{
    pthread_t t[THREADS];
    page = mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(page != MAP_FAILED);
    for (unsigned i = 0; i < THREADS; i++)
        check(!pthread_create(&t[i], NULL, watch, (void *)(uintptr_t)i));
    storm_began = now_ns();
    for (unsigned round = 1; goes_on(round); round++) {
        change(round);
        __atomic_store_n(&go, round, __ATOMIC_RELEASE);
        all_have_seen(round);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    ok("threads see what others map");
}

// Faults, maps and unmaps concurrently; every thread finds only its own bytes.
static void *churn(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; goes_on(i); i++) {
        unsigned pages = 1 + (i * 7 + me) % 16;
        char *p =
            mmap(NULL, pages * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(p != MAP_FAILED);
        for (unsigned n = 0; n < pages; n++) {
            check(p[n * PAGE] == 0);
            p[n * PAGE] = (char)(me + n);
        }
        if (i % 3 == 0)
            check(mprotect(p, PAGE, PROT_READ) == 0);
        for (unsigned n = 0; n < pages; n++)
            check(p[n * PAGE] == (char)(me + n));
        check(munmap(p, pages * PAGE) == 0);
    }
    return NULL;
}

static void test_churn(void)
{
    pthread_t t[THREADS];
    storm_began = now_ns();
    for (unsigned i = 0; i < THREADS; i++)
        check(!pthread_create(&t[i], NULL, churn, (void *)(uintptr_t)i));
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    ok("threads map and unmap at once");
}

int main(void)
{
    alarm(TEST_SECONDS);
    test_shootdown();
    test_churn();
    return 0;
}
