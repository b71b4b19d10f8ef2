// Branch records of the real machine: all CPUs.
//
// Each CPU uses its own struct lbr. `lock` guards detection and the number of
// users; `recording` is written by each CPU for itself, with interrupts off.

#include "arch/cpu.h"
#include "arch/i386/pmu/lbr.h"
#include "arch/i386/pmu/machine.h"
#include "kernel/base/log.h"
#include "kernel/sync/mutex.h"

static struct mutex lock = MUTEX_INIT(lock, "branch records");
static struct lbr lbrs[CPU_MAX];
static bool recording[CPU_MAX];
static bool detected;                // lock
static const char *reasons[CPU_MAX]; // constant after detection
static u32 users;                    // lock

static struct lbr *this_lbr(void)
{
    return &lbrs[this_cpu()->id];
}

static void detect_here(void *arg UNUSED)
{
    reasons[this_cpu()->id] = lbr_detect(this_lbr(), &pmu_machine_io);
}

const char *lbr_why_not(void)
{
    mutex_lock(&lock);
    if (!detected)
        smp_call_all(detect_here, NULL);
    detected = true;
    mutex_unlock(&lock);
    for (u32 i = 0; i < cpu_count; i++) {
        if (reasons[i])
            return reasons[i];
    }
    return NULL;
}

u32 lbr_depth(void)
{
    u32 depth = LBR_DEPTH_MAX;
    for (u32 i = 0; i < cpu_count; i++)
        depth = MIN(depth, lbrs[i].depth);
    return depth;
}

static void begin_here(void *arg UNUSED)
{
    lbr_begin(this_lbr());
    recording[this_cpu()->id] = true;
}

static void end_here(void *arg UNUSED)
{
    recording[this_cpu()->id] = false;
    lbr_end(this_lbr());
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
    if (recording[this_cpu()->id] && lbr_records(this_lbr()))
        lbr_store(this_lbr(), out);
}

void lbr_load(const struct lbr_stack *in)
{
    assert_checked(!irqs_enabled());
    const struct lbr *l = this_lbr();
    if (!recording[this_cpu()->id])
        return;
    if (!lbr_records(l))
        lbr_begin(l);
    lbr_replace(l, in);
}

u32 lbr_callers(u32 *out, u32 max)
{
    const struct lbr *l = this_lbr();
    bool records = READ_ONCE(recording[this_cpu()->id]) && lbr_records(l);
    return records ? lbr_list(l, out, max) : 0;
}
