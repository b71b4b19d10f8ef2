// The time stamp counter as a timecounter (SDM vol. 3, 18.17).
//
// Its possible defects: other CPUs' TSCs may differ (checked when they start);
// its rate may change (CPUID reports whether it may; it is watched in any case,
// see kernel/time/timewatch.c); and RDTSC may execute ahead of earlier
// instructions. LFENCE prevents that where there is SSE2; elsewhere a locked
// instruction does, and programs cannot read the clock themselves.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/time_line.h"
#include "kernel/base/log.h"
#include "kernel/time/timecounter.h"
#include "lib/cpu_memory.h"
#include "lib/format.h"

#define CPUID_1_EDX_TSC 4
#define CPUID_1_EDX_SSE 25
#define CPUID_1_EDX_SSE2 26

static u64 tsc_read_fenced(void)
{
    return rdtsc_ordered();
}

static u64 tsc_read_locked(void)
{
    __asm__ volatile("lock; addl $0, (%%esp)" ::: "memory", "cc");
    return rdtsc();
}

static const char *tsc_probe(struct timecounter *tc);
static void tsc_corrected(struct timecounter *tc);

static struct timecounter tsc = {
    .name = "tsc",
    .rank = RANK_TSC,
    .flags = TIMECOUNTER_MEASURED,
    .mask = ~0ull,
    .read = tsc_read_locked,
    .probe = tsc_probe,
    .corrected = tsc_corrected,
};
TIMECOUNTER(tsc);

static const char *describe(const struct calibration *c)
{
    static char note[80];
    const char *kind = cpu_features.invariant_tsc ? "invariant" : "watched";
    if (!c->by)
        format(note, sizeof(note), "%s; no clock measures it: rate assumed",
               kind);
    else
        format(note, sizeof(note), "%s; %s %s, +-%u ppm", kind,
               c->stated ? "stated by" : "measured by the", c->by,
               c->error_ppm);
    return note;
}

static const char *tsc_probe(struct timecounter *tc)
{
    struct cpuid id = cpuid(1, 0);
    if (!(id.edx >> CPUID_1_EDX_TSC & 1))
        return "the CPU has none";
    // (An emulator may be told to have SSE2 alone: it lacks LFENCE then.)
    if (id.edx >> CPUID_1_EDX_SSE2 & id.edx >> CPUID_1_EDX_SSE & 1) {
        tc->flags |= TIMECOUNTER_USER;
        tc->read = tsc_read_fenced;
    }
    const struct calibration *c = clock_calibrate();
    tc->note = describe(c);
    tc->hz = c->tsc_hz;
    tc->error_ppm = c->error_ppm;
    clock_set_tsc_hz(tc->hz);
    return NULL;
}

u32 clock_tsc_error_ppm(void)
{
    return READ_ONCE(tsc.error_ppm);
}

static void tsc_corrected(struct timecounter *tc)
{
    u64 before = clock_tsc_hz();
    tc->note = cpu_features.invariant_tsc ? "invariant; measured again"
                                          : "watched; measured again";
    clock_set_tsc_hz(tc->hz);
    lapic_timer_scale(before, tc->hz);
    clock_events_corrected();
    LINKER_SET_FOR_EACH(const struct tsc_rate_observer, o, tsc_rate_observers)
        (*o)->corrected();
}

// --- synchronisation check --------------------------------------------------
//
// In each round the boot CPU publishes its time stamp, the other CPUs take
// theirs when they see it, and the boot CPU takes another when it sees theirs:
// none may be earlier than the one seen before. The faster the CPUs see each
// other's stamps, the smaller the difference that is detected; so there are
// many rounds, unless a single one takes several time slices of a host.

#define ROUNDS_MIN 2
#define ROUNDS_MAX 200
#define ROUNDS_TICKS 1000000 // less than a millisecond

// Each field has one writer.
static struct {
    u32 round;
    u64 stamp;
} sync_call;
static struct sync_answer {
    u32 round; // the round `stamp` belongs to
    u64 stamp;
    u64 warp; // most that it was earlier than the boot CPU's stamp
} * sync_answers[CPU_MAX];
CPU_MEMORY(sync_answers, 1);

void tsc_sync_answer(u32 cpu)
{
    struct sync_answer *a = sync_answers[cpu];
    u32 round = READ_ONCE(sync_call.round);
    if (round == a->round)
        return;
    u64 now = tsc.read(), seen = READ_ONCE(sync_call.stamp);
    if ((s64)(now - seen) < 0)
        WRITE_ONCE(a->warp, MAX(a->warp, seen - now));
    WRITE_ONCE(a->stamp, now);
    WRITE_ONCE(a->round, round); // x86: visible after the stores before it
}

// Returns the most by which an answer's stamp was later than this CPU's TSC on
// seeing it.
static u64 call_round(u32 cpus)
{
    u64 warp = 0;
    u32 round = sync_call.round + 1;
    WRITE_ONCE(sync_call.stamp, tsc.read());
    WRITE_ONCE(sync_call.round, round);
    for (u32 cpu = 1; cpu < cpus; cpu++) {
        while (READ_ONCE(sync_answers[cpu]->round) != round)
            cpu_relax();
        u64 seen = READ_ONCE(sync_answers[cpu]->stamp), now = tsc.read();
        if ((s64)(now - seen) < 0)
            warp = MAX(warp, seen - now);
    }
    return warp;
}

void tsc_sync_check(u32 cpus)
{
    u64 warp = 0, start = tsc.read();
    for (u32 i = 0; i < ROUNDS_MAX; i++) {
        warp = MAX(warp, call_round(cpus));
        if (i + 1 >= ROUNDS_MIN && tsc.read() - start > ROUNDS_TICKS)
            break;
    }
    for (u32 cpu = 1; cpu < cpus; cpu++)
        warp = MAX(warp, READ_ONCE(sync_answers[cpu]->warp));
    if (!warp || tsc.why_not)
        return;
    log_printf("clock: the CPUs' TSCs differ by %llu\n", warp);
    timecounter_demote(&tsc, "the CPUs' counters do not agree");
}
