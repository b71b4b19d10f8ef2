// The time stamp counter as a timecounter (SDM vol. 3, 18.17).
//
// Its possible defects: other CPUs' TSCs may differ (tsc_sync.c);
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

u64 tsc_read(void)
{
    return tsc.read();
}

void tsc_demote(const char *why)
{
    if (!tsc.why_not)
        timecounter_demote(&tsc, why);
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
