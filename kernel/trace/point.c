// Listeners of trace points.
//
// A point's listeners are a list that emit.c reads without a lock, with
// interrupts off. `listeners_mutex` guards changes. An added listener is
// complete before it is linked. A removed one is unlinked, and in use until
// every CPU has taken an interrupt.
//
// Patching the branch of a point stops all CPUs, and ordinary users open and
// close sensors that listen. So a branch lingers: it stays on for LINGER_NS
// after its last listener, and a new listener takes it over. A point is patched
// at most twice in that time, whatever users do.
#include "kernel/trace/point.h"

#include "arch/cpu.h"
#include "kernel/base/log.h"
#include "kernel/sync/mutex.h"
#include "kernel/time/callout.h"
#include "kernel/trace/emit.h"

#define LINGER_NS NSEC_PER_SEC

static struct mutex listeners_mutex =
    MUTEX_INIT(listeners_mutex, "trace listeners");
// When the branch of a point that has lost a listener goes off; 0: no branch
// lingers. Guarded by listeners_mutex.
static u64 lingers_until[TRACE_POINTS];

// Switches off what is due. Returns when the next one is due, or WAIT_FOREVER.
static u64 end_lingering(u64 now)
{
    u64 next = WAIT_FOREVER;
    mutex_assert_held(&listeners_mutex);
    for (u32 i = 0; i < TRACE_POINTS; i++) {
        if (lingers_until[i] && lingers_until[i] <= now) {
            lingers_until[i] = 0;
            branch_set(&trace_points[i].branch, false);
        } else if (lingers_until[i]) {
            next = MIN(next, lingers_until[i]);
        }
    }
    return next;
}

static void linger_callout(struct callout *c)
{
    mutex_lock(&listeners_mutex);
    u64 next = end_lingering(clock_now_ns());
    if (next != WAIT_FOREVER)
        callout_set(c, next);
    mutex_unlock(&listeners_mutex);
}

static void begin_lingering(u32 point)
{
    static struct callout c;
    mutex_assert_held(&listeners_mutex);
    if (!c.fn)
        callout_init(&c, linger_callout, CALLOUT_THREAD);
    lingers_until[point] = clock_now_ns() + LINGER_NS;
    if (!callout_pending(&c))
        callout_set(&c, lingers_until[point]);
}

// The branch of a point is on, or is switched on.
static void take_branch(u32 point)
{
    mutex_assert_held(&listeners_mutex);
    if (lingers_until[point])
        lingers_until[point] = 0;
    else
        branch_set(&trace_points[point].branch, true);
}

// One listener less: the last one's branch lingers.
static void leave_branch(u32 point)
{
    mutex_assert_held(&listeners_mutex);
    if (lingers_until[point])
        branch_set(&trace_points[point].branch, false);
    begin_lingering(point);
}

void trace_listen(struct trace_listener *l)
{
    assert(l->point < TRACE_POINTS && l->point != TRACE_profile_sample &&
           l->point != TRACE_sched_pmc && l->fn);
    struct trace_point *p = &trace_points[l->point];
    mutex_lock(&listeners_mutex);
    if (!l->users++) {
        l->next = p->listeners;
        __atomic_store_n(&p->listeners, l, __ATOMIC_RELEASE);
        trace_update_direct();
        take_branch(l->point);
    }
    mutex_unlock(&listeners_mutex);
}

static void unlink(struct trace_point *p, struct trace_listener *l)
{
    mutex_assert_held(&listeners_mutex);
    struct trace_listener **at = &p->listeners;
    while (*at != l)
        at = &(*at)->next;
    __atomic_store_n(at, l->next, __ATOMIC_RELEASE);
}

void trace_unlisten(struct trace_listener *l)
{
    struct trace_point *p = &trace_points[l->point];
    mutex_lock(&listeners_mutex);
    assert(l->users);
    if (!--l->users) {
        unlink(p, l);
        trace_update_direct();
        leave_branch(l->point);
        smp_quiesce_others();
    }
    mutex_unlock(&listeners_mutex);
}
