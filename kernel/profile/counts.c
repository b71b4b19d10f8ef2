// Plain counting sessions.
//
// A task carries a bit for each session that counts it, as it does for those
// that sample it (targets.c). While its threads run the session's group of
// events is in on their CPU: counts_switched puts it there and takes it out,
// and a callout of the CPU lets events take turns.
//
// `counts_lock`, a mutex, guards begin, read and end; `tasks_lock` the bits of
// tasks, the slots, and what the sums of a session are taken from. `active` has
// the sessions that count on the CPUs; a session leaves it first, and then
// every CPU takes it out before it is freed.

#include "kernel/profile/counts.h"

#include "arch/clock.h"
#include "arch/cpu.h"
#include "arch/pmu.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/counted_cpu.h"
#include "kernel/sync/mutex.h"
#include "kernel/task/calls.h"
#include "kernel/task/permission.h"
#include "kernel/task/statistics.h"
#include "kernel/task/task.h"
#include "lib/string.h"

#define SESSIONS_MAX 16
#define SESSIONS_OF_USER (SESSIONS_MAX / 4) // of one that is not root
#define TURN_NS (10 * NSEC_PER_MSEC)
#define KNOWN_FLAGS (SPROFILE_O_FROM_EXEC | SPROFILE_O_CHILDREN)

// The kernel's own events.
enum figure {
    TASK_CLOCK,
    USER_TIME,
    KERNEL_TIME,
    CONTEXT_SWITCHES,
    CPU_MIGRATIONS,
    PAGE_FAULTS,
    SYSTEM_CALLS,
    FIGURES,
};

static const struct {
    const char *name;
    enum sprofile_count_kind kind;
} figures[FIGURES] = {
    [TASK_CLOCK] = { "task-clock", SPROFILE_COUNT_NS },
    [USER_TIME] = { "user-time", SPROFILE_COUNT_NS },
    [KERNEL_TIME] = { "kernel-time", SPROFILE_COUNT_NS },
    [CONTEXT_SWITCHES] = { "context-switches", SPROFILE_COUNT_EVENTS },
    [CPU_MIGRATIONS] = { "cpu-migrations", SPROFILE_COUNT_EVENTS },
    [PAGE_FAULTS] = { "page-faults", SPROFILE_COUNT_EVENTS },
    [SYSTEM_CALLS] = { "system-calls", SPROFILE_COUNT_EVENTS },
};

struct sums {
    u64 of[FIGURES]; // times in TSC cycles
};

struct event {
    enum sprofile_count_kind kind;
    enum figure figure; // of the kernel's own; FIGURES: of the counters
    u32 group_index;    // of the counters'
    const char *why_not;
};

struct count_session {
    u32 slot, flags, events;
    struct event event[SPROFILE_COUNTS_MAX];
    struct pmu_counting *group; // NULL: no event of the counters
    struct task *task;          // referenced
    bool waits_for_exec;        // counts_lock
    bool limited;               // to an ordinary user's tasks
    u32 uid;                    // whose it is
    u32 live;                   // targets; tasks_lock; read without it
    struct sums ended, base;    // of targets that have ended; at the start
    u64 began_ns;               // 0: it has not started
};

static struct mutex counts_lock = MUTEX_INIT(counts_lock, "counts");
static struct count_session *slots[SESSIONS_MAX];
static u32 inherited; // sessions that want children; tasks_lock
static u32 active;    // marked

_Static_assert(SESSIONS_MAX <= 32, "bits of task->counts");

static struct {
    struct counted_cpu counted;
    struct callout turn;
} per_cpu[CPU_MAX]; // each its CPU's, interrupts off

// --- the performance counters -----------------------------------------------

static void group_in(u32 slot)
{
    assert_checked(slot < SESSIONS_MAX && slots[slot] && slots[slot]->group);
    pmu_counting_in(slots[slot]->group);
}

static void group_out(u32 slot)
{
    assert_checked(slot < SESSIONS_MAX && slots[slot] && slots[slot]->group);
    pmu_counting_out(slots[slot]->group);
}

static const struct counted_ops group_ops = { group_in, group_out };

static void turn(struct callout *c)
{
    assert_checked(!irqs_enabled());
    u32 in = per_cpu[this_cpu()->id].counted.in;
    for (u32 left = in; left; left &= left - 1)
        pmu_counting_turn(slots[__builtin_ctz(left)]->group);
    if (in)
        callout_set(c, clock_now_ns() + TURN_NS);
}

static void counts_switched(void)
{
    assert_checked(!irqs_enabled());
    u32 cpu = this_cpu()->id;
    u32 wanted = READ_ONCE(current->task->counts) & READ_ONCE(active);
    if (wanted == per_cpu[cpu].counted.in)
        return;
    counted_switch(&per_cpu[cpu].counted, wanted, &group_ops);
    if (wanted && !callout_pending(&per_cpu[cpu].turn)) {
        callout_init(&per_cpu[cpu].turn, turn, CALLOUT_INTERRUPT);
        callout_set(&per_cpu[cpu].turn, clock_now_ns() + TURN_NS);
    }
}

static const struct switch_observer switch_observer = { counts_switched };
SWITCH_OBSERVER(switch_observer);

static void look_here(void *arg UNUSED)
{
    counts_switched();
}

// Every CPU takes notice of what has changed.
static void look_everywhere(void)
{
    assert(irqs_enabled());
    smp_call_all(look_here, NULL);
}

static void activate(struct count_session *s)
{
    mutex_assert_held(&counts_lock);
    if (!s->group)
        return;
    __atomic_fetch_or(&active, 1u << s->slot, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&switch_watchers, 1, __ATOMIC_SEQ_CST);
    look_everywhere();
}

static void deactivate(struct count_session *s)
{
    mutex_assert_held(&counts_lock);
    u32 bit = 1u << s->slot;
    if (!(__atomic_fetch_and(&active, ~bit, __ATOMIC_SEQ_CST) & bit))
        return;
    look_everywhere();
    __atomic_fetch_sub(&switch_watchers, 1, __ATOMIC_SEQ_CST);
}

// --- the kernel's own events ------------------------------------------------

static void add_figures(struct task *t, struct sums *sums)
{
    spin_assert_held(&tasks_lock);
    struct task_figures f;
    task_figures_locked(t, &f);
    sums->of[TASK_CLOCK] += f.user + f.kernel;
    sums->of[USER_TIME] += f.user;
    sums->of[KERNEL_TIME] += f.kernel;
    sums->of[CONTEXT_SWITCHES] += f.voluntary + f.forced;
    sums->of[CPU_MIGRATIONS] += f.migrations;
    sums->of[PAGE_FAULTS] += f.faults;
    sums->of[SYSTEM_CALLS] += syscall_task_total(t);
}

struct adding {
    u32 bit;
    struct sums sums;
};

static void add_target(struct task *t, void *arg)
{
    spin_assert_held(&tasks_lock);
    struct adding *a = arg;
    if (t->counts & a->bit)
        add_figures(t, &a->sums);
}

static struct sums sums_now(struct count_session *s)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    struct adding a = { 1u << s->slot, s->ended };
    task_for_each_locked(add_target, &a);
    spin_unlock_irq(&tasks_lock, flags);
    return a.sums;
}

// --- what becomes of the targets --------------------------------------------

static void forked(struct task *child, struct task *parent)
{
    spin_assert_held(&tasks_lock);
    u32 bits = parent->counts & inherited;
    WRITE_ONCE(child->counts, bits);
    for (; bits; bits &= bits - 1)
        ADD_ONCE(slots[__builtin_ctz(bits)]->live, 1);
}

static void start(struct count_session *s)
{
    mutex_assert_held(&counts_lock);
    assert(!s->began_ns);
    s->waits_for_exec = false;
    s->base = sums_now(s);
    s->began_ns = clock_now_ns();
    activate(s);
}

static void execed(struct task *t)
{
    if (!READ_ONCE(t->counts))
        return;
    mutex_lock(&counts_lock);
    for (u32 i = 0; i < SESSIONS_MAX; i++) {
        struct count_session *s = slots[i];
        if (s && s->task == t && s->waits_for_exec)
            start(s);
    }
    mutex_unlock(&counts_lock);
}

static void leave(struct task *t, u32 slot)
{
    spin_assert_held(&tasks_lock);
    struct count_session *s = slots[slot];
    assert(s && s->live);
    add_figures(t, &s->ended);
    ADD_ONCE(s->live, -1u);
}

// Ordinary users' sessions do not follow it into a program with more rights.
static void guarded(struct task *t)
{
    if (!READ_ONCE(t->counts))
        return;
    u32 flags = spin_lock_irq(&tasks_lock);
    for (u32 bits = t->counts; bits; bits &= bits - 1) {
        u32 slot = (u32)__builtin_ctz(bits);
        if (!slots[slot]->limited)
            continue;
        WRITE_ONCE(t->counts, t->counts & ~(1u << slot));
        counts_switched();
        leave(t, slot);
    }
    spin_unlock_irq(&tasks_lock, flags);
}

// The last thread is here: what it still does in the kernel, to give back what
// it had, is not counted.
static void ended(struct task *t)
{
    if (!READ_ONCE(t->counts))
        return;
    u32 flags = spin_lock_irq(&tasks_lock);
    u32 bits = t->counts;
    WRITE_ONCE(t->counts, 0);
    counts_switched();
    for (; bits; bits &= bits - 1)
        leave(t, (u32)__builtin_ctz(bits));
    spin_unlock_irq(&tasks_lock, flags);
}

static const struct task_observer counts_observer = {
    .forked = forked,
    .execed = execed,
    .guarded = guarded,
    .ended = ended,
};
TASK_OBSERVER(counts_observer);

// --- begin and end ----------------------------------------------------------

static enum figure figure_named(const char *name)
{
    u32 i = 0;
    while (i < FIGURES && strcmp(figures[i].name, name) != 0)
        i++;
    return i;
}

// One event of the options. It is among those of the counters when it is one
// and they can count it.
static void take_event(const char *name, struct event *e,
                       struct pmu_event *group, u32 *count)
{
    assert(*count < SPROFILE_COUNTS_MAX);
    struct pmu_event *of_counters = &group[*count];
    *e = (struct event){ .figure = figure_named(name) };
    if (e->figure < FIGURES) {
        e->kind = figures[e->figure].kind;
    } else if (pmu_event_parse(name, of_counters)) {
        e->kind = SPROFILE_COUNT_UNKNOWN;
        e->why_not = "there is no such event";
    } else {
        e->why_not = pmu_why_not();
        if (!e->why_not)
            e->why_not = pmu_event_why_not(of_counters);
        e->kind = e->why_not ? SPROFILE_COUNT_NOT : SPROFILE_COUNT_EVENTS;
        e->group_index = *count;
        *count += !e->why_not;
    }
}

static int take_events(struct count_session *s,
                       const struct sprofile_count_options *o)
{
    struct pmu_event group[SPROFILE_COUNTS_MAX];
    u32 count = 0;
    for (u32 i = 0; i < o->events; i++)
        take_event(o->event[i], &s->event[i], group, &count);
    s->events = o->events;
    return count ? pmu_counting_create(group, count, &s->group) : 0;
}

static int check_options(const struct sprofile_count_options *o)
{
    if (o->size != sizeof(*o) || o->flags & ~(u32)KNOWN_FLAGS || !o->events ||
        o->events > SPROFILE_COUNTS_MAX)
        return -EINVAL;
    for (u32 i = 0; i < o->events; i++) {
        if (!memchr(o->event[i], 0, sizeof(o->event[i])))
            return -EINVAL;
    }
    return 0;
}

static int take_slot(struct count_session *s)
{
    mutex_assert_held(&counts_lock);
    u32 own = 0, slot = SESSIONS_MAX;
    for (u32 i = SESSIONS_MAX; i-- > 0;) {
        if (!slots[i])
            slot = i;
        else
            own += slots[i]->uid == s->uid;
    }
    s->slot = slot;
    bool too_many = s->limited && own >= SESSIONS_OF_USER;
    return too_many || slot == SESSIONS_MAX ? -EUSERS : 0;
}

static void publish(struct count_session *s)
{
    mutex_assert_held(&counts_lock);
    assert(s->slot < SESSIONS_MAX && !slots[s->slot]);
    u32 bit = 1u << s->slot, flags = spin_lock_irq(&tasks_lock);
    slots[s->slot] = s;
    if (s->task->threads_running) { // else nobody would tell of its end
        WRITE_ONCE(s->task->counts, s->task->counts | bit);
        WRITE_ONCE(s->live, 1);
    }
    if (s->flags & SPROFILE_O_CHILDREN)
        inherited |= bit;
    spin_unlock_irq(&tasks_lock, flags);
    if (s->flags & SPROFILE_O_FROM_EXEC)
        s->waits_for_exec = true;
    else
        start(s);
}

static void free_session(struct count_session *s)
{
    if (s->group)
        pmu_counting_destroy(s->group);
    kfree(s);
}

int counts_begin(struct task *task, const struct sprofile_count_options *o,
                 struct count_session **out)
{
    assert_may_sleep();
    assert(task);
    int err = check_options(o);
    if (err)
        return err;
    struct count_session *s = kmalloc(sizeof(*s));
    if (!s)
        return -ENOMEM;
    *s = (struct count_session){
        .task = task,
        .flags = o->flags,
        .limited = !may_profile_everything(),
        .uid = READ_ONCE(current_task()->euid),
    };
    err = take_events(s, o);
    mutex_lock(&counts_lock);
    if (!err)
        err = take_slot(s);
    if (!err) {
        task_ref(task);
        publish(s);
    }
    mutex_unlock(&counts_lock);
    if (err) {
        free_session(s);
        return err;
    }
    *out = s;
    return 0;
}

static void remove(struct task *t, void *arg)
{
    spin_assert_held(&tasks_lock);
    const struct count_session *s = arg;
    WRITE_ONCE(t->counts, t->counts & ~(1u << s->slot));
}

void counts_end(struct count_session *s)
{
    mutex_lock(&counts_lock);
    assert(slots[s->slot] == s);
    deactivate(s);
    u32 flags = spin_lock_irq(&tasks_lock);
    inherited &= ~(1u << s->slot);
    task_for_each_locked(remove, s);
    slots[s->slot] = NULL;
    spin_unlock_irq(&tasks_lock, flags);
    mutex_unlock(&counts_lock);
    task_unref(s->task);
    free_session(s);
}

// --- what it has come to ----------------------------------------------------

// In nanoseconds: what is divided is the sum of its parts.
static u64 time_of(enum figure figure, const struct sums *sums)
{
    if (figure != TASK_CLOCK)
        return clock_tsc_to_ns(sums->of[figure]);
    return time_of(USER_TIME, sums) + time_of(KERNEL_TIME, sums);
}

static void put(const struct event *e, const struct sums *sums,
                const struct pmu_count *group, struct sprofile_count *out)
{
    assert(e->figure <= FIGURES && e->group_index < SPROFILE_COUNTS_MAX);
    *out = (struct sprofile_count){ .kind = e->kind };
    if (e->why_not) {
        strlcpy(out->why, e->why_not, sizeof(out->why));
    } else if (e->figure == FIGURES) {
        const struct pmu_count *c = &group[e->group_index];
        out->value = c->value;
        out->enabled = c->enabled;
        out->running = c->running;
    } else {
        out->value = e->kind == SPROFILE_COUNT_NS ? time_of(e->figure, sums)
                                                  : sums->of[e->figure];
        out->enabled = out->running = sums->of[TASK_CLOCK];
    }
}

void counts_read(struct count_session *s, struct sprofile_counts *out)
{
    struct pmu_count group[SPROFILE_COUNTS_MAX];
    mutex_lock(&counts_lock);
    assert(slots[s->slot] == s);
    struct sums sums = s->waits_for_exec ? s->base : sums_now(s);
    for (u32 i = 0; i < FIGURES; i++)
        sums.of[i] -= s->base.of[i];
    if (s->group)
        pmu_counting_read(s->group, group);
    *out = (struct sprofile_counts){
        .events = s->events,
        .tasks = READ_ONCE(s->live),
        .tsc_hz = clock_tsc_hz(),
        .elapsed_ns = s->began_ns ? clock_now_ns() - s->began_ns : 0,
    };
    for (u32 i = 0; i < s->events; i++)
        put(&s->event[i], &sums, group, &out->count[i]);
    mutex_unlock(&counts_lock);
}
