// Listeners of trace points.
//
// A point's listeners are a list that emit.c reads without a lock, with
// interrupts off. `listeners_mutex` guards changes. An added listener is
// complete before it is linked. A removed one is unlinked, and in use until
// every CPU has taken an interrupt.
#include "kernel/trace/point.h"

#include "arch/cpu.h"
#include "kernel/base/log.h"
#include "kernel/sync/mutex.h"
#include "kernel/trace/emit.h"

static struct mutex listeners_mutex =
    MUTEX_INIT(listeners_mutex, "trace listeners");

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
        branch_set(&p->branch, true);
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
        branch_set(&p->branch, false);
        smp_quiesce_others();
    }
    mutex_unlock(&listeners_mutex);
}
