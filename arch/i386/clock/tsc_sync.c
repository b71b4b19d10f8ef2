// The CPUs' TSCs: do they agree when the CPUs start? If not, each is set to the
// boot CPU's, so that times of all CPUs can be compared: in traces, in the
// ledger of a thread that changes its CPU, and as a clock.
//
// In each round the boot CPU publishes its time stamp, the other CPUs take
// theirs when they see it, and the boot CPU takes another when it sees theirs:
// none may be earlier than the one seen before. The faster the CPUs see each
// other's stamps, the smaller the difference that is detected; so there are
// many rounds, unless a single one takes several time slices of a host.
//
// The difference itself is that of an answer's stamp to the middle of the boot
// CPU's two, in the shortest round. It is added to IA32_TSC_ADJUST (SDM vol. 3,
// 18.17.3) where there is one, else to the TSC, which falls behind by the time
// that writing it takes: the next round measures that.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/clock/clock_start.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/msr.h"
#include "kernel/base/log.h"
#include "kernel/time/timecounter.h"
#include "lib/cpu_memory.h"

#define ROUNDS_MIN 2
#define ROUNDS_MAX 200
#define ROUNDS_TICKS 1000000 // less than a millisecond
#define OFFSET_ROUNDS 50
#define SETTINGS 4 // attempts to set a TSC

#define CPUID_7_EBX_TSC_ADJUST 1
#define MSR_TSC 0x10u
#define MSR_TSC_ADJUST 0x3bu

// The boot CPU writes it.
static struct {
    u32 round;
    u64 stamp;
    u32 setting; // number of the request that CPU `cpu` adds `by` to its TSC
    u32 cpu;
    u64 by;
} sync_call;
// Its CPU writes it.
static struct sync_answer {
    u32 round; // the round `stamp` belongs to
    u64 stamp;
    // The most that it was earlier than the boot CPU's stamp; the boot CPU
    // clears it between two rounds.
    u64 warp;
    u32 setting; // the last one seen
} * sync_answers[CPU_MAX];
CPU_MEMORY(sync_answers, 1);

static bool has_adjust(void)
{
    return cpuid(0, 0).eax >= 7 &&
           cpuid(7, 0).ebx >> CPUID_7_EBX_TSC_ADJUST & 1;
}

static void add_to_tsc(u64 by)
{
    u64 adjust;
    if (has_adjust() && read_msr_safely(MSR_TSC_ADJUST, &adjust))
        write_msr_safely(MSR_TSC_ADJUST, adjust + by);
    else
        write_msr_safely(MSR_TSC, tsc_read() + by);
}

// x86 keeps the order of loads and of stores: a request is seen after its
// fields.
static void answer_setting(struct sync_answer *a, u32 cpu)
{
    u32 setting = READ_ONCE(sync_call.setting);
    if (setting == a->setting)
        return;
    if (READ_ONCE(sync_call.cpu) == cpu)
        add_to_tsc(READ_ONCE(sync_call.by));
    WRITE_ONCE(a->setting, setting);
}

void tsc_sync_answer(u32 cpu)
{
    struct sync_answer *a = sync_answers[cpu];
    answer_setting(a, cpu);
    u32 round = READ_ONCE(sync_call.round);
    if (round == a->round)
        return;
    u64 now = tsc_read(), seen = READ_ONCE(sync_call.stamp);
    if ((s64)(now - seen) < 0)
        WRITE_ONCE(a->warp, MAX(a->warp, seen - now));
    WRITE_ONCE(a->stamp, now);
    WRITE_ONCE(a->round, round); // x86: visible after the stores before it
}

static u32 begin_round(void)
{
    u32 round = sync_call.round + 1;
    WRITE_ONCE(sync_call.stamp, tsc_read());
    WRITE_ONCE(sync_call.round, round);
    return round;
}

static u64 wait_for_stamp(u32 cpu, u32 round)
{
    while (READ_ONCE(sync_answers[cpu]->round) != round)
        cpu_relax();
    return READ_ONCE(sync_answers[cpu]->stamp);
}

// Returns the most by which an answer's stamp was later than this CPU's TSC on
// seeing it.
static u64 call_round(u32 cpus)
{
    u64 warp = 0;
    u32 round = begin_round();
    for (u32 cpu = 1; cpu < cpus; cpu++) {
        u64 seen = wait_for_stamp(cpu, round), now = tsc_read();
        if ((s64)(now - seen) < 0)
            warp = MAX(warp, seen - now);
    }
    return warp;
}

// The most that two stamps contradict each other; 0: all TSCs seem to agree.
static u64 find_warp(u32 cpus)
{
    u64 warp = 0, start = tsc_read();
    for (u32 i = 0; i < ROUNDS_MAX; i++) {
        warp = MAX(warp, call_round(cpus));
        if (i + 1 >= ROUNDS_MIN && tsc_read() - start > ROUNDS_TICKS)
            break;
    }
    for (u32 cpu = 1; cpu < cpus; cpu++)
        warp = MAX(warp, READ_ONCE(sync_answers[cpu]->warp));
    return warp;
}

// --- setting them

// How far the TSC of `cpu` is ahead of this one, +-*width / 2.
static u64 measure_offset(u32 cpu, u64 *width)
{
    u64 offset = 0;
    *width = ~0ull;
    for (u32 i = 0; i < OFFSET_ROUNDS; i++) {
        u32 round = begin_round();
        u64 before = sync_call.stamp, stamp = wait_for_stamp(cpu, round);
        u64 took = tsc_read() - before;
        if (took < *width) {
            *width = took;
            offset = stamp - (before + took / 2);
        }
    }
    return offset;
}

static void request_setting(u32 cpu, u64 by)
{
    WRITE_ONCE(sync_call.cpu, cpu);
    WRITE_ONCE(sync_call.by, by);
    WRITE_ONCE(sync_call.setting, sync_call.setting + 1);
    while (READ_ONCE(sync_answers[cpu]->setting) != sync_call.setting)
        cpu_relax();
}

static u64 magnitude(u64 offset)
{
    return (s64)offset < 0 ? -offset : offset;
}

// Returns how far the TSC of `cpu` was off.
static u64 set_tsc(u32 cpu)
{
    u64 width, first = measure_offset(cpu, &width), offset = first;
    u64 lag = 0; // what writing the TSC costs
    for (u32 i = 0; i < SETTINGS && magnitude(offset) > width / 2; i++) {
        request_setting(cpu, lag - offset);
        offset = measure_offset(cpu, &width);
        if (!i)
            lag = -offset;
    }
    return magnitude(first);
}

static void set_all(u32 cpus)
{
    u64 most = 0;
    u32 last = 0;
    for (u32 cpu = 1; cpu < cpus; cpu++) {
        u64 off = set_tsc(cpu);
        if (off > most) {
            most = off;
            last = cpu;
        }
    }
    log_printf("clock: the TSCs of the other CPUs were set to the boot CPU's; "
               "that of CPU %u was off by %llu cycles\n",
               last, most);
}

void tsc_sync_check(u32 cpus)
{
    u64 warp = find_warp(cpus);
    if (!warp)
        return;
    set_all(cpus);
    for (u32 cpu = 1; cpu < cpus; cpu++)
        WRITE_ONCE(sync_answers[cpu]->warp, 0);
    warp = find_warp(cpus);
    if (!warp)
        return;
    log_printf("warning: clock: the CPUs' TSCs differ by %llu, and cannot be "
               "set: do not compare times of two CPUs\n",
               warp);
    tsc_demote("the CPUs' counters do not agree");
}
