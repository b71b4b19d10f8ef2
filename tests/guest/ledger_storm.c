// Sum of accounts == elapsed TSC: every reading of system.audit shows a
// difference of 0 while tasks are forked and killed, threads come and go, move
// between CPUs and fault, and signals, pipes and timers interrupt them.
//
//     ledger_storm [SECONDS [STORMS]]    (2, all): the first STORMS kinds
#include "test.h"

#include "user/libstrobe/sysinfo.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/time.h>

#define PAGE 4096u

static int cpus;

static uint32_t random_below(uint32_t n)
{
    static __thread uint32_t state;

    if (state == 0)
        state = (uint32_t)getpid() * 2654435761u + 1;
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

static void run_on(uint32_t mask)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (int i = 0; i < cpus; i++) {
        if (mask & 1u << i)
            CPU_SET(i, &set);
    }
    if (CPU_COUNT(&set) > 0)
        check(sched_setaffinity(0, sizeof(set), &set) == 0);
}

// PAUSE yields to the next CPU where CPUs are emulated in turns. Under QEMU
// 7.2's -icount, a CPU that computes until the next timer is due leaves no time
// to the next CPU, which with timers as frequent as here would never run.
static void spin(uint32_t n)
{
    for (volatile uint32_t i = 0; i < n; i++)
        __asm__ volatile("pause");
}

// ---- the storms: each goes on until it is killed

static void forks(void)
{
    for (;;) {
        pid_t pid = fork();
        if (pid == 0) {
            spin(random_below(1000));
            if (random_below(4) == 0)
                execl("/bin/busybox", "true", NULL);
            _exit(0);
        }
        if (pid > 0)
            waitpid(pid, NULL, 0);
    }
}

// Children that are killed at random times.
static void kills(void)
{
    for (;;) {
        pid_t pid = fork();
        if (pid == 0) {
            for (;;) {
                sched_yield();
                spin(random_below(2000));
            }
        }
        if (pid < 0)
            continue;
        spin(random_below(20000));
        kill(pid, random_below(2) ? SIGKILL : SIGSEGV);
        waitpid(pid, NULL, 0);
    }
}

static void migrations(void)
{
    for (;;) {
        run_on(1u << random_below(cpus));
        spin(random_below(500));
        run_on(1 + random_below((1u << cpus) - 1));
    }
}

static void *short_thread(void *memory)
{
    char *pages = memory;

    pages[random_below(16) * PAGE]++;
    return NULL;
}

// Threads that end, and memory that is unmapped while others use the space, so
// that CPUs interrupt each other (TLB shootdown).
static void threads(void)
{
    for (;;) {
        pthread_t thread[4];
        int started = 0;
        char *pages = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED)
            continue;
        while (started < 4 &&
               pthread_create(&thread[started], NULL, short_thread, pages) == 0)
            started++;
        while (started > 0)
            pthread_join(thread[--started], NULL);
        munmap(pages, 16 * PAGE);
    }
}

static void on_alarm(int signal)
{
    (void)signal;
}

// Timer interrupts, each with a signal and its handler.
static void timers(void)
{
    struct itimerval t = { { 0, 100 }, { 0, 100 } };

    on_signal(SIGALRM, on_alarm, 0);
    check(setitimer(ITIMER_REAL, &t, NULL) == 0);
    for (;;)
        spin(1000);
}

static void pipes(void)
{
    int there[2], back[2];
    char byte = 0;

    check(pipe(there) == 0 && pipe(back) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    for (;;) {
        if (pid == 0) {
            if (read(there[0], &byte, 1) != 1)
                _exit(0);
            check(write(back[1], &byte, 1) == 1);
        } else {
            check(write(there[1], &byte, 1) == 1);
            check(read(back[0], &byte, 1) == 1);
        }
    }
}

static void sleeps(void)
{
    for (;;) {
        struct timespec t = { 0, random_below(200000) };
        nanosleep(&t, NULL);
    }
}

static void on_fault(int signal)
{
    (void)signal;
}

// Exceptions in user mode, with signal handlers.
static void faults(void)
{
    on_signal(SIGILL, on_fault, SA_NODEFER);
    on_signal(SIGTRAP, on_fault, SA_NODEFER);
    for (;;) {
        raise(SIGILL);
        __asm__ volatile("int3");
    }
}

static void (*const storms[])(void) = { forks,  kills, migrations, threads,
                                        timers, pipes, sleeps,     faults };
#define STORMS (sizeof(storms) / sizeof(storms[0]))

// ---- the auditor

struct last {
    uint64_t elapsed[34], sum[34];
    size_t rows;
};

// One row for each CPU and two for all threads.
static void audit(struct last *last)
{
    size_t count;
    struct sysinfo_audit *a = sysinfo_read_audit("system.audit", &count);

    check(a != NULL);
    check(count == (size_t)cpus + 2);
    for (size_t i = 0; i < count; i++) {
        if (a[i].difference != 0 || a[i].sum != a[i].elapsed)
            dprintf(1, "# cpu %d %s: elapsed %llu sum %llu\n", (int)a[i].cpu,
                    a[i].account, (unsigned long long)a[i].elapsed,
                    (unsigned long long)a[i].sum);
        check(a[i].difference == 0 && a[i].sum == a[i].elapsed);
        check(last->rows == 0 || a[i].elapsed >= last->elapsed[i]);
        last->elapsed[i] = a[i].elapsed;
        last->sum[i] = a[i].sum;
    }
    last->rows = count;
    free(a);
}

int main(int argc, char *argv[])
{
    unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    size_t kinds = argc > 2 ? (size_t)atoi(argv[2]) : STORMS;
    struct last last = { 0 };
    cpu_set_t all;
    unsigned readings = 0;

    check(kinds <= STORMS);
    check(sched_getaffinity(0, sizeof(all), &all) == 0);
    cpus = CPU_COUNT(&all);
    if (sysinfo_get_type("system.audit") < 0) {
        ok("nothing: this is not Strobe");
        return 0;
    }
    alarm(seconds + TEST_SECONDS);
    struct sysinfo_totals before, after;
    check(sysinfo_get_totals("system.totals", &before) == 0);
    pid_t pids[STORMS];
    for (size_t i = 0; i < kinds; i++) {
        pids[i] = fork();
        check(pids[i] >= 0);
        if (pids[i] == 0) {
            check(setpgid(0, 0) == 0);
            alarm(0);
            storms[i]();
        }
        setpgid(pids[i], pids[i]); // so does the child: either may be first
    }
    for (uint64_t end = now_ns() + seconds * 1000000000ull; now_ns() < end;) {
        audit(&last);
        readings++;
    }
    for (size_t i = 0; i < kinds; i++) {
        check(kill(-pids[i], SIGKILL) == 0);
        check(waitpid(pids[i], NULL, 0) == pids[i]);
    }
    audit(&last);
    check(sysinfo_get_totals("system.totals", &after) == 0);
    dprintf(1, "# %u readings; %llu tasks created, %llu switches, on %d CPUs\n",
            readings,
            (unsigned long long)(after.tasks_created - before.tasks_created),
            (unsigned long long)(after.switches - before.switches), cpus);
    check(readings > 0);
    ok("every reading of the audit balances");
    return 0;
}
