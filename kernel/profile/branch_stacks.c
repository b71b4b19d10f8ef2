// Each thread's own stack of user calls.
//
// A CPU records one stack. At a context switch it is stored for the thread that
// has left, and that of the new thread is loaded, so stacks never mix
// (branch_places.h). A thread whose calls are not known begins with an empty
// stack. A switch is heard after the run queue's lock is released, so its time
// is that of the switch itself.
//
// `lock` guards the table. `owner` of a CPU is written by the CPU itself with
// interrupts off: the thread whose stack it records, 0 while that changes. An
// NMI between the two finds another thread's id, or 0, and reports no callers.

#include "kernel/profile/branch_stacks.h"

#include "arch/cpu.h"
#include "arch/lbr.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/branch_places.h"
#include "kernel/stream/stream.h"
#include "kernel/task/task.h"
#include "kernel/trace/point.h"
#include "lib/cpu_memory.h"
#include "lib/string.h"

#define TABLE_PAGES \
    DIV_ROUND_UP(BRANCH_PLACES * sizeof(struct branch_place), PAGE_SIZE)

static struct spinlock lock = SPINLOCK_INIT("branch stacks");
static struct branch_place *table; // NULL: nothing is recorded
static u32 users;                  // streams_lock
static u32 owner[CPU_MAX];
static struct lbr_stack *moved[CPU_MAX]; // used by its CPU, interrupts off
CPU_MEMORY(moved, 1);

static void switched(const void *record)
{
    const struct trace_sched_switch *s = record;
    u32 cpu = this_cpu()->id;
    u64 now = rdtsc(), then = now - (u32)((u32)now - s->at);
    bool known = owner[cpu] == s->prev;
    WRITE_ONCE(owner[cpu], 0);
    barrier();
    if (s->prev && known) {
        lbr_save(moved[cpu]);
        spin_lock(&lock);
        branch_place_put(table, s->prev, then, moved[cpu]);
        spin_unlock(&lock);
    }
    if (s->next) {
        spin_lock(&lock);
        branch_place_take(table, s->next, then, moved[cpu]);
        spin_unlock(&lock);
        lbr_load(moved[cpu]);
    }
    barrier();
    WRITE_ONCE(owner[cpu], s->next);
}

static struct trace_listener listener = { .point = TRACE_sched_switch,
                                          .fn = switched };

// The current thread begins with an empty stack.
static void begin_here(void *arg UNUSED)
{
    u32 cpu = this_cpu()->id;
    WRITE_ONCE(owner[cpu], 0);
    barrier();
    moved[cpu]->count = 0;
    lbr_load(moved[cpu]);
    barrier();
    WRITE_ONCE(owner[cpu], READ_ONCE(current->tid));
}

static void end_here(void *arg UNUSED)
{
    WRITE_ONCE(owner[this_cpu()->id], 0);
}

int branch_stacks_start(void)
{
    mutex_assert_held(&streams_lock);
    if (users) {
        users++;
        return 0;
    }
    if (lbr_why_not())
        return -EOPNOTSUPP;
    table = vmap_alloc(TABLE_PAGES, PROT_R | PROT_W, FRAME_BUFFER);
    if (!table)
        return -ENOMEM;
    memset(table, 0, TABLE_PAGES * PAGE_SIZE);
    users = 1;
    lbr_start_all();
    trace_listen(&listener);
    smp_call_all(begin_here, NULL);
    return 0;
}

void branch_stacks_stop(void)
{
    mutex_assert_held(&streams_lock);
    assert(users);
    if (--users)
        return;
    trace_unlisten(&listener);
    smp_call_all(end_here, NULL);
    lbr_stop_all();
    vmap_free(table, TABLE_PAGES);
    table = NULL;
}

NOTRACE u32 branch_stacks_callers(u32 *out, u32 max)
{
    u32 tid = READ_ONCE(current->tid);
    if (!tid || READ_ONCE(owner[this_cpu()->id]) != tid)
        return 0;
    return lbr_callers(out, max);
}

// The new program has none of the old one's calls. (Without recording nothing
// is loaded.)
static void empty_at_exec(struct task *t)
{
    if (t != current->task)
        return;
    u32 flags = irq_save();
    if (READ_ONCE(owner[this_cpu()->id]))
        begin_here(NULL);
    irq_restore(flags);
}

static const struct task_observer branch_observer = { .execed = empty_at_exec };
TASK_OBSERVER(branch_observer);
