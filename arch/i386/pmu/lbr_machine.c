// Branch records of the real machine: all CPUs.
//
// Each CPU uses its own struct lbr_cpu. `lock` guards detection and the number
// of users; `recording` is written by each CPU for itself, with interrupts off.

#include "arch/cpu.h"
#include "arch/i386/mm/peek.h"
#include "arch/i386/pmu/lbr.h"
#include "arch/i386/pmu/machine.h"
#include "kernel/base/log.h"
#include "kernel/debug/kasan.h"
#include "kernel/debug/kcsan.h"
#include "kernel/sync/mutex.h"
#include "lib/cpu_memory.h"

static struct mutex lock = MUTEX_INIT(lock, "branch records");
static struct lbr_cpu {
    struct lbr lbr;
    const char *why_not; // constant after detection
    bool recording;
} * lbr_cpus[CPU_MAX];
CPU_MEMORY(lbr_cpus, 1);
static bool detected; // lock
static u32 users;     // lock

static NOTRACE struct lbr_cpu *here(void)
{
    return lbr_cpus[this_cpu()->id];
}

static void detect_here(void *arg UNUSED)
{
    here()->why_not = lbr_detect(&here()->lbr, &pmu_machine_io);
}

const char *lbr_why_not(void)
{
    mutex_lock(&lock);
    if (!detected)
        smp_call_all(detect_here, NULL);
    detected = true;
    mutex_unlock(&lock);
    for (u32 i = 0; i < cpu_count; i++) {
        if (lbr_cpus[i]->why_not)
            return lbr_cpus[i]->why_not;
    }
    return NULL;
}

u32 lbr_depth(void)
{
    u32 depth = LBR_DEPTH_MAX;
    for (u32 i = 0; i < cpu_count; i++)
        depth = MIN(depth, lbr_cpus[i]->lbr.depth);
    return depth;
}

static void begin_here(void *arg UNUSED)
{
    lbr_begin(&here()->lbr);
    here()->recording = true;
}

static void end_here(void *arg UNUSED)
{
    here()->recording = false;
    lbr_end(&here()->lbr);
}

void lbr_start_all(void)
{
    mutex_lock(&lock);
    if (!users++)
        smp_call_all(begin_here, NULL);
    mutex_unlock(&lock);
}

void lbr_stop_all(void)
{
    mutex_lock(&lock);
    assert(users);
    if (!--users)
        smp_call_all(end_here, NULL);
    mutex_unlock(&lock);
}

void lbr_save(struct lbr_stack *out)
{
    assert_checked(!irqs_enabled());
    out->count = 0;
    if (here()->recording && lbr_records(&here()->lbr))
        lbr_store(&here()->lbr, out);
}

void lbr_load(const struct lbr_stack *in)
{
    assert_checked(!irqs_enabled());
    const struct lbr *l = &here()->lbr;
    if (!here()->recording)
        return;
    if (!lbr_records(l))
        lbr_begin(l);
    lbr_replace(l, in);
}

// User code may change meanwhile.
static NOTRACE NO_KASAN NO_KCSAN bool read_code(void *arg, u32 at, u8 *byte)
{
    const u8 *code = (const u8 *)user_peek(arg, at, sizeof(*code));
    if (!code)
        return false;
    *byte = *code;
    return true;
}

NOTRACE u32 lbr_callers(u32 *out, u32 max)
{
    const struct lbr *l = &here()->lbr;
    struct user_peek p = { 0 };
    const struct lbr_code code = { read_code, &p };
    if (!READ_ONCE(here()->recording) || !lbr_records(l))
        return 0;
    user_peek_begin(&p, 0, false);
    u32 count = lbr_list(l, &code, out, max);
    user_peek_end(&p);
    return count;
}
