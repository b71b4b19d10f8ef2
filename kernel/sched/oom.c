// The victim is chosen under tasks_lock, and is CHOSEN until it is a zombie:
// other threads that find no memory until then wait for the same victim. A task
// that already ends counts as chosen. A victim that does not end in time (the
// caller may hold a mutex that it waits for) is GIVEN_UP, and the next one is
// chosen.

#include "kernel/sched/oom.h"

#include "kernel/init/log.h"
#include "kernel/mm/frame.h"
#include "kernel/sched/ids.h"
#include "kernel/sched/task.h"

#define LOOK_AGAIN (NSEC_PER_MSEC)
#define PAGE_KIB (PAGE_SIZE / 1024)

enum { UNTOUCHED, CHOSEN, GIVEN_UP };

struct choice {
    const struct aspace *inits;
    struct task *task; // the one, or the best so far
    u32 pages;         // what that one has
    bool ending;       // `task` will be gone without us
};

static u32 pages_of(const struct aspace *as)
{
    return READ_ONCE(as->resident_pages) + READ_ONCE(as->pt.tables);
}

static void consider(struct task *t, void *arg)
{
    struct choice *c = arg;
    if (t->zombie || t->oom == GIVEN_UP || t->id == INIT_ID || c->ending)
        return;
    if (t->oom == CHOSEN || (t->exiting && t != &kernel_task)) {
        *c = (struct choice){ .task = t, .ending = true };
        return;
    }
    if (!t->aspace || t->aspace == c->inits)
        return;
    u32 pages = pages_of(t->aspace);
    if (!c->task || pages > c->pages) {
        c->task = t;
        c->pages = pages;
    }
}

// Who shares its memory goes with it: else nothing would be won.
static void mark(struct task *t, void *arg)
{
    const struct choice *c = arg;
    if (!t->zombie && t->aspace == c->task->aspace)
        t->oom = CHOSEN;
}

// Referenced; NULL: there is none.
static struct task *choose(struct choice *c)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    struct task *init = task_find_locked(INIT_ID);
    *c = (struct choice){ .inits = init ? init->aspace : NULL };
    task_for_each_locked(consider, c);
    if (c->task) {
        task_ref(c->task);
        if (c->ending)
            c->task->oom = CHOSEN;
        else
            task_for_each_locked(mark, c);
    }
    spin_unlock_irq(&tasks_lock, flags);
    return c->task;
}

static void kill_chosen(void)
{
    for (struct task *t = task_walk(NULL, 0); t; t = task_walk(t, 0)) {
        if (READ_ONCE(t->oom) == CHOSEN)
            signal_send_task(t, SIGKILL, NULL);
    }
}

static void announce(const struct choice *c)
{
    const struct task *asks = current_task();
    log_printf("out of memory: task %u (%s) killed; it had the most, %u KiB; "
               "task %u (%s) wanted more\n",
               c->task->id, c->task->name, c->pages * PAGE_KIB, asks->id,
               asks->name);
}

// All who wait come by here: the first one says it.
static void give_up(struct task *victim)
{
    if (__atomic_exchange_n(&victim->oom, GIVEN_UP, __ATOMIC_RELAXED) == CHOSEN)
        log_printf("out of memory: task %u (%s) does not end\n", victim->id,
                   victim->name);
}

// Until it has given back enough. False: `current` is to end itself.
static bool await_end(struct task *victim)
{
    u64 until = clock_now_ns() + OOM_PATIENCE;
    while (!READ_ONCE(victim->zombie) && frames_exhausted()) {
        u64 now = clock_now_ns();
        if (now >= until) {
            give_up(victim);
            return true;
        }
        if (thread_sleep_until(now + LOOK_AGAIN, WAIT_KILLABLE))
            return false;
    }
    return true;
}

// Memory may have come back meanwhile. But what fails there again, and nowhere
// else in between, fails for another reason.
static bool first_time(u32 address)
{
    struct thread *t = current;
    bool first = t->oom_address != address;
    t->oom_address = address;
    return first;
}

bool oom_relieve(u32 address)
{
    if (!frames_exhausted())
        return first_time(address);
    struct choice c;
    struct task *victim = choose(&c);
    if (!victim)
        return false;
    if (!c.ending) {
        announce(&c);
        kill_chosen();
    }
    bool again = victim != current_task() && await_end(victim);
    task_unref(victim);
    return again;
}
