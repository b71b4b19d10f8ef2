// The out-of-memory killer. The victim is chosen with tasks_lock held, and is
// CHOSEN until it is a zombie: until then other threads that get no memory wait
// for the same victim. A task that is already ending counts as chosen. A victim
// that does not end in time (the caller may hold a mutex that it waits for) is
// GIVEN_UP, and the next one is chosen.
//
// The victim is the largest task of the user whose tasks have most memory.
// Root's tasks are excluded when an ordinary user's task needs memory: root's
// part of memory is never used for users. So no user, however much memory it
// uses, causes root's tasks to be killed.

#include "kernel/task/oom.h"

#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/task/task.h"
#include "kernel/task/task_ids.h"

#define LOOK_AGAIN (NSEC_PER_MSEC)
#define PAGE_KIB (PAGE_SIZE / 1024)

enum { UNTOUCHED, CHOSEN, GIVEN_UP };

struct choice {
    const struct aspace *init_aspace;
    struct task *ending; // a task that is ending already
    u32 from;            // users with lower ids are not considered
    u32 uid;             // the first user from there on that has tasks
    struct task *task;   // its largest task; NULL: there is no such user
    u32 pages;           // pages of that task
    u32 user_pages;      // pages of all tasks of that user
};

// Resident pages, page tables, and the pages for struct area: the kernel's data
// that can be large.
static u32 pages_of(const struct aspace *as)
{
    u32 areas = READ_ONCE(as->area_count) / (PAGE_SIZE / sizeof(struct area));
    return READ_ONCE(as->resident_pages) + READ_ONCE(as->pt.tables) + areas;
}

static void find_ending(struct task *t, void *arg)
{
    struct choice *c = arg;
    if (!c->ending && !t->zombie && t->oom != GIVEN_UP && t->id != INIT_ID &&
        (t->oom == CHOSEN || (t->exiting && t != &kernel_task)))
        c->ending = t;
}

static void count_candidate(struct task *t, void *arg)
{
    struct choice *c = arg;
    u32 uid = READ_ONCE(t->uid);
    if (t->zombie || t->oom == GIVEN_UP || t->id == INIT_ID || !t->aspace ||
        t->aspace == c->init_aspace)
        return;
    if (uid < c->from || (c->task && uid > c->uid))
        return;
    if (c->task && uid < c->uid) {
        c->task = NULL;
        c->user_pages = 0;
    }
    c->uid = uid;
    u32 pages = pages_of(t->aspace);
    c->user_pages += pages;
    if (!c->task || pages > c->pages) {
        c->task = t;
        c->pages = pages;
    }
}

// Of the users from `uid` on, the one whose tasks have most pages. `task` is
// NULL when there is none.
static struct choice choose_user(const struct aspace *init_aspace, u32 uid)
{
    struct choice best = { .task = NULL }, c = { .uid = uid - 1 };
    do {
        c = (struct choice){ .init_aspace = init_aspace, .from = c.uid + 1 };
        task_for_each_locked(count_candidate, &c);
        if (c.user_pages > best.user_pages)
            best = c;
    } while (c.task);
    return best;
}

// Tasks that share the victim's memory (CLONE_VM) are killed, too: else nothing
// would be freed.
static void mark(struct task *t, void *arg)
{
    const struct choice *c = arg;
    if (!t->zombie && t->aspace == c->task->aspace)
        t->oom = CHOSEN;
}

// The victim, with a reference for the caller. NULL: there is none.
static struct task *choose(struct choice *c)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    const struct task *init = task_find_locked(INIT_ID);
    *c = (struct choice){ .ending = NULL };
    task_for_each_locked(find_ending, c);
    if (c->ending)
        c->ending->oom = CHOSEN;
    else
        *c = choose_user(init ? init->aspace : NULL,
                         may_use_root_reserve() ? 0 : 1);
    if (c->task)
        task_for_each_locked(mark, c);
    struct task *victim = c->ending ? c->ending : c->task;
    if (victim)
        task_ref(victim);
    spin_unlock_irq(&tasks_lock, flags);
    return victim;
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
    log_printf(
        "out of memory: task %u (%s) killed; it had the most, %u KiB, of "
        "user %u; task %u (%s) wanted more\n",
        c->task->id, c->task->name, c->pages * PAGE_KIB, c->uid, asks->id,
        asks->name);
}

// Called by each waiting thread; the first one logs it.
static void give_up(struct task *victim)
{
    if (__atomic_exchange_n(&victim->oom, GIVEN_UP, __ATOMIC_RELAXED) == CHOSEN)
        log_printf("out of memory: task %u (%s) does not end\n", victim->id,
                   victim->name);
}

// Waits until the victim has freed enough. False: the current thread was killed
// itself.
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

// Memory is free again: retry. But if the same address fails twice in a row,
// the reason is another one.
static bool first_time(u32 address)
{
    struct thread *t = current;
    bool first = t->oom_address != address;
    t->oom_address = address;
    return first;
}

static bool kill_for_memory(u32 address)
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

bool memory_is_out(u32 address)
{
    if (kill_for_memory(address))
        return true;
    struct task *t = current_task();
    if (!signal_fatal()) { // else this task is the chosen victim
        log_printf("out of memory: task %u (%s) killed\n", t->id, t->name);
        signal_send_task(t, SIGKILL, NULL);
    }
    return false;
}
