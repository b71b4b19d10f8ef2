// The CPUs: that each runs threads, woken by an interrupt of another, that each
// one's timer ends a sleep, that their TSCs agree, and that they are alike.
#define _GNU_SOURCE // sched_setaffinity
#include "selftest.h"

#include "user/libstrobe/sysinfo.h"

#include <strobe/abi.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLEEP_NS 2000000
#define SLEEPS 8
#define LATE_NS 5000000 // of the best sleep
#define TSC_ROUNDS 100
#define FEATURE_HTT (1u << 28) // CPUID leaf 1, EDX

static cpu_set_t all; // the CPUs that the caller may use
static long count;

long cpu_count(void)
{
    if (count == 0) {
        sched_getaffinity(0, sizeof(all), &all);
        count = sysconf(_SC_NPROCESSORS_ONLN);
    }
    return count;
}

bool run_on(long cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof(set), &set) == 0;
}

void run_anywhere(void)
{
    sched_setaffinity(0, sizeof(all), &all);
}

// ---- alike

struct cpuid {
    uint32_t a, b, c, d;
};

static struct cpuid cpuid(uint32_t leaf)
{
    struct cpuid r = { .a = leaf };

    __asm__ volatile("cpuid" : "+a"(r.a), "=b"(r.b), "+c"(r.c), "=d"(r.d));
    return r;
}

static uint32_t cpu_by_kernel(void)
{
    struct sysinfo_thread t = { 0 };
    char path[40];

    snprintf(path, sizeof(path), "system.threads.%d", (int)gettid());
    sysinfo_get_thread(path, &t);
    return t.cpu;
}

// The features of this CPU (CPUID leaf 1), and its APIC id: that of 32 bits
// where CPUID has it (leaf 0BH, SDM vol. 2A, CPUID). Before the Pentium 4 it
// reports none: then the CPU's number, which the kernel says.
static uint64_t features(uint32_t *apic_id)
{
    struct cpuid one = cpuid(1);

    *apic_id = one.b >> 24;
    if (*apic_id == 0 && !(one.d & FEATURE_HTT))
        *apic_id = cpu_by_kernel();
    if (cpuid(0).a >= 0xb) {
        struct cpuid topology = cpuid(0xb);
        if (topology.b & 0xffff)
            *apic_id = topology.d;
    }
    return (uint64_t)one.c << 32 | one.d;
}

// Intel's erratum FDIV of the first Pentiums: 4195835 / 3145727.
static bool divides_wrongly(void)
{
    volatile double a = 4195835, b = 3145727;

    return a / b * b - a > 1 || a / b * b - a < -1;
}

// Whether the calling thread, after a move, runs on a CPU where it did not run
// before.
static bool is_new(uint32_t apic_id)
{
    static uint32_t seen[STROBE_CPUS_MAX], seen_count;

    for (uint32_t i = 0; i < seen_count; i++) {
        if (seen[i] == apic_id)
            return false;
    }
    if (seen_count < STROBE_CPUS_MAX)
        seen[seen_count++] = apic_id;
    return true;
}

void check_cpus(void)
{
    long other = -1, wrong = -1, not_reached = -1;
    uint64_t first = 0;

    for (long cpu = 0; cpu < cpu_count(); cpu++) {
        uint32_t apic_id;
        bool moved = run_on(cpu);
        uint64_t here = features(&apic_id);
        if (!moved || !is_new(apic_id))
            not_reached = cpu;
        if (cpu == 0)
            first = here;
        else if (here != first)
            other = cpu;
        if (divides_wrongly())
            wrong = cpu;
    }
    run_anywhere();
    if (not_reached >= 0)
        report(WRONG, "CPUs", "no thread gets to CPU %ld", not_reached);
    else
        report(OK, "CPUs", "%ld, each runs threads", cpu_count());
    if (other >= 0)
        report(WRONG, "CPU features", "CPU %ld's differ from CPU 0's", other);
    else
        report(OK, "CPU features", "%s",
               cpu_count() > 1 ? "alike on all CPUs" : "there is one CPU");
    if (wrong >= 0)
        report(WRONG, "FPU", "CPU %ld: 4195835 / 3145727 is wrong", wrong);
    else
        report(OK, "FPU", "it divides");
}

// ---- TSC

static uint64_t read_tsc(void)
{
    uint32_t low, high;

    __asm__ volatile("lock; addl $0, (%%esp); rdtsc"
                     : "=a"(low), "=d"(high)::"memory", "cc");
    return (uint64_t)high << 32 | low;
}

// Goes from CPU to CPU: the TSC must never be behind.
void check_tsc(void)
{
    uint64_t last = read_tsc(), behind = 0;

    if (cpu_count() == 1) {
        report(NOT_THERE, "TSCs agree", "there is one CPU");
        return;
    }
    for (int i = 0; i < TSC_ROUNDS; i++) {
        run_on(i % cpu_count());
        uint64_t now = read_tsc();
        if (now < last && last - now > behind)
            behind = last - now;
        last = now;
    }
    run_anywhere();
    if (behind > 0)
        report(WRONG, "TSCs agree", "one is behind by %llu cycles",
               (unsigned long long)behind);
    else
        report(OK, "TSCs agree", "never behind in %d changes of CPU",
               TSC_ROUNDS);
}

// ---- sleeps

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

// Returns how late the best of the sleeps ended, or, if one was too short, by
// how much (negative).
static int64_t sleep_late(void)
{
    const struct timespec time = { 0, SLEEP_NS };
    int64_t best = INT64_MAX;

    for (int i = 0; i < SLEEPS; i++) {
        int64_t start = now_ns();
        nanosleep(&time, NULL);
        int64_t late = now_ns() - start - SLEEP_NS;
        if (late < 0)
            return late;
        if (late < best)
            best = late;
    }
    return best;
}

void check_cpu_timers(void)
{
    int64_t worst = 0;
    bool wrong = false;

    for (long cpu = 0; cpu < cpu_count(); cpu++) {
        if (!run_on(cpu))
            continue; // already reported
        int64_t late = sleep_late();
        if (late < 0)
            report(WRONG, "sleeps", "CPU %ld: too short by %lld ns", cpu,
                   (long long)-late);
        else if (late > LATE_NS)
            report(WRONG, "sleeps", "CPU %ld: each %lld us late or more", cpu,
                   (long long)late / 1000);
        wrong |= late < 0 || late > LATE_NS;
        if (late > worst)
            worst = late;
    }
    run_anywhere();
    if (!wrong)
        report(OK, "sleeps",
               "of 2 ms on each CPU: none short, at best %lld us "
               "late",
               (long long)worst / 1000);
}
