// The victim is chosen under tasks_lock, and is CHOSEN until it is a zombie:
// other threads that find no memory until then wait for the same victim. A task
// that already ends counts as chosen. A victim that does not end in time (the
// caller may hold a mutex that it waits for) is GIVEN_UP, and the next one is
// chosen.
//
// It is the largest task of the user whose tasks have most. Root's are left out
// when an ordinary user's task asks: what is root's is never there for that,
// and so no user, whatever it takes, has root's tasks ended.

#include "kernel/task/oom.h"

#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/task/ids.h"
#include "kernel/task/task.h"

#define LOOK_AGAIN (NSEC_PER_MSEC)
#define PAGE_KIB (PAGE_SIZE / 1024)

enum { UNTOUCHED, CHOSEN, GIVEN_UP };

struct choice {
    const struct aspace *inits;
    struct task *ending; // it will be gone without us
    u32 from;            // users before this one are not looked at
    u32 uid;             // the first one from there on that has tasks,
    struct task *task;   // its largest, or NULL: there is no such user
    u32 pages;           // what that one has,
    u32 users_pages;     // and all of them
};

// Its pages and, of what the kernel keeps for them, what can be many.
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

static void consider(struct task *t, void *arg)
{
    struct choice *c = arg;
    u32 uid = READ_ONCE(t->uid);
    if (t->zombie || t->oom == GIVEN_UP || t->id == INIT_ID || !t->aspace ||
        t->aspace == c->inits)
        return;
    if (uid < c->from || (c->task && uid > c->uid))
        return;
    if (c->task && uid < c->uid) {
        c->task = NULL;
        c->users_pages = 0;
    }
    c->uid = uid;
    u32 pages = pages_of(t->aspace);
    c->users_pages += pages;
    if (!c->task || pages > c->pages) {
        c->task = t;
        c->pages = pages;
    }
}

// Of users from `uid` on: whose tasks have most. Its `task` is NULL when there
// are none.
static struct choice choose_user(const struct aspace *inits, u32 uid)
{
    struct choice best = { .task = NULL }, c = { .uid = uid - 1 };
    do {
        c = (struct choice){ .inits = inits, .from = c.uid + 1 };
        task_for_each_locked(consider, &c);
        if (c.users_pages > best.users_pages)
            best = c;
    } while (c.task);
    return best;
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
    const struct task *init = task_find_locked(INIT_ID);
    *c = (struct choice){ .ending = NULL };
    task_for_each_locked(find_ending, c);
    if (c->ending)
        c->ending->oom = CHOSEN;
    else
        *c = choose_user(init ? init->aspace : NULL, has_roots_share() ? 0 : 1);
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

static bool relieve(u32 address)
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
    if (relieve(address))
        return true;
    struct task *t = current_task();
    if (!signal_fatal()) { // else it is the one that was chosen
        log_printf("out of memory: task %u (%s) killed\n", t->id, t->name);
        signal_send_task(t, SIGKILL, NULL);
    }
    return false;
}
