// Which tasks a session samples, and what becomes of them: fork, exec, exit.
//
// A task carries a bit for each session whose target it is; a child gets the
// bits of sessions that want children. All of that changes under tasks_lock;
// sample_take reads the bits of the task that runs. The profiler is told of
// its targets' forks, execs and ends by records in a ring of the session's
// own, so that each sample can be looked up in the program that ran then.

#include "arch/cpu.h"
#include "kernel/base/log.h"
#include "kernel/profile/session_private.h"
#include "kernel/task/task.h"
#include "lib/string.h"

static u32 inherited; // sessions that want children; tasks_lock

static void add(struct session *s, struct task *t)
{
    spin_assert_held(&tasks_lock);
    assert(!(t->sessions & 1u << s->slot) && t->threads_running);
    WRITE_ONCE(t->sessions, t->sessions | 1u << s->slot);
    ADD_ONCE(s->live, 1);
}

// What the session's task has started, or what that has; not who profiles it.
static void add_descendant(struct task *t, void *arg)
{
    struct session *s = arg;
    const struct task *up = t->parent;
    while (up && up != s->task)
        up = up->parent;
    bool may = !s->limited || credentials_may_inspect(s->profiler, t);
    if (up && may && t != s->profiler && t->threads_running)
        add(s, t);
}

void targets_add(struct session *s)
{
    add(s, s->task);
    if (!(s->flags & SPROFILE_O_CHILDREN))
        return;
    inherited |= 1u << s->slot;
    task_for_each_locked(add_descendant, s);
}

static void remove(struct task *t, void *arg)
{
    const struct session *s = arg;
    WRITE_ONCE(t->sessions, t->sessions & ~(1u << s->slot));
}

static void take_out(const struct session *s)
{
    struct session **at = &sampled;
    while (*at != s)
        at = &(*at)->next;
    WRITE_ONCE(*at, s->next);
}

void targets_clear(struct session *s)
{
    mutex_assert_held(&sessions_lock);
    u32 flags = spin_lock_irq(&tasks_lock);
    inherited &= ~(1u << s->slot);
    WRITE_ONCE(slots_used, slots_used & ~(1u << s->slot));
    slots[s->slot] = NULL;
    take_out(s);
    task_for_each_locked(remove, s);
    remove(&kernel_task, s); // which is in no table
    spin_unlock_irq(&tasks_lock, flags);
}

struct sum {
    const struct session *session;
    u64 cycles;
};

static u64 cycles_of(const struct session *s, struct task *t)
{
    u64 user, kernel;
    task_times_locked(t, &user, &kernel);
    return (s->when.user ? user : 0) + (s->when.kernel ? kernel : 0);
}

static void add_cycles(struct task *t, void *arg)
{
    struct sum *sum = arg;
    if (t->sessions & 1u << sum->session->slot)
        sum->cycles += cycles_of(sum->session, t);
}

u64 targets_cycles(struct session *s)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    struct sum sum = { s, s->ended_cycles };
    if (s->flags & SPROFILE_O_CHILDREN)
        task_for_each_locked(add_cycles, &sum);
    else
        add_cycles(s->task, &sum);
    spin_unlock_irq(&tasks_lock, flags);
    return sum.cycles;
}

// --- what is told -----------------------------------------------------------

union task_record {
    struct sprofile_task task;
    u8 bytes[sizeof(struct sprofile_task) + SPROFILE_PATH_MAX + 8];
};

static void describe(union task_record *r, struct task *t, u32 parent,
                     enum sprofile_task_kind kind)
{
    memset(r, 0, sizeof(*r));
    r->task.task = t->id;
    r->task.parent = parent;
    r->task.kind = (u16)kind;
    u32 flags = spin_lock_irq(&t->lock);
    strlcpy(r->task.name, t->name, sizeof(r->task.name));
    if (t->path)
        strlcpy(r->task.path, t->path, SPROFILE_PATH_MAX);
    r->task.build_id_size = t->build_id_size;
    memcpy(r->task.build_id, t->build_id, t->build_id_size);
    u32 bias = t->load_bias;
    spin_unlock_irq(&t->lock, flags);
    u32 size = sizeof(r->task) + (u32)strlen(r->task.path) + 1;
    size = ALIGN_UP(size + (bias ? sizeof(bias) : 0), 8u);
    assert_checked(size <= sizeof(*r));
    if (bias)
        memcpy(r->bytes + size - sizeof(bias), &bias, sizeof(bias));
    r->task.head = (struct sprofile_record){
        .type = SPROFILE_R_TASK,
        .size = (u16)size,
        .cpu = (u16)this_cpu()->id,
        .flags = bias ? SPROFILE_F_LOAD_BIAS : 0,
        .time = rdtsc(),
    };
}

// Readers are woken at once when it is time: tasks can come and go faster than
// the session's pump looks.
static void put(struct session *s, const union task_record *r)
{
    u32 flags = spin_lock_irq(&s->event_lock);
    if (!ring_write(&s->events, r, r->task.head.size))
        WRITE_ONCE(s->events_lost, s->events_lost + 1);
    spin_unlock_irq(&s->event_lock, flags);
    if (session_readable(s))
        waitq_wake_all(s->readers);
}

// tasks_lock held.
static void tell(struct task *t, u32 parent, enum sprofile_task_kind kind)
{
    spin_assert_held(&tasks_lock);
    union task_record r;
    bool described = false;
    for (u32 used = slots_used; used; used &= used - 1) {
        u32 i = (u32)__builtin_ctz(used);
        struct session *s = slots[i];
        if (!s || (s->task && !(t->sessions & 1u << i)))
            continue;
        if (!described)
            describe(&r, t, parent, kind);
        described = true;
        put(s, &r);
    }
}

// tasks_lock held.
static void forked(struct task *child, struct task *parent)
{
    spin_assert_held(&tasks_lock);
    if (!slots_used)
        return;
    u32 bits = parent->sessions & inherited;
    WRITE_ONCE(child->sessions, bits);
    for (u32 left = bits; left; left &= left - 1)
        ADD_ONCE(slots[__builtin_ctz(left)]->live, 1);
    tell(child, parent->id, SPROFILE_T_FORKED);
}

static void execed(struct task *t)
{
    if (!READ_ONCE(slots_used))
        return;
    u32 flags = spin_lock_irq(&tasks_lock);
    tell(t, t->parent ? t->parent->id : 0, SPROFILE_T_EXECED);
    spin_unlock_irq(&tasks_lock, flags);
    mutex_lock(&sessions_lock);
    for (u32 i = 0; i < SESSIONS_MAX; i++) {
        struct session *s = slots[i];
        if (s && s->task == t && s->wait_exec)
            session_exec_seen(s);
    }
    mutex_unlock(&sessions_lock);
}

// The last thread of `t` is here, and leaves user mode for good: from the end
// of its bit on it is not sampled, and what was is in the rings. tasks_lock
// held.
static void target_ended(struct task *t, u32 slot)
{
    spin_assert_held(&tasks_lock);
    assert(slot < SESSIONS_MAX);
    struct session *s = slots[slot];
    s->ended_cycles += cycles_of(s, t);
    ADD_ONCE(s->live, -1u);
    if (s->live)
        return;
    WRITE_ONCE(s->ended, true);
    waitq_wake_all(s->readers);
}

// A program with more rights than its user has, or with secrets, begins: it is
// nothing to ordinary users' sessions, which lose a target.
static void guarded(struct task *t)
{
    if (!READ_ONCE(slots_used))
        return;
    u32 flags = spin_lock_irq(&tasks_lock);
    for (u32 bits = t->sessions; bits; bits &= bits - 1) {
        u32 slot = (u32)__builtin_ctz(bits);
        if (!slots[slot]->limited)
            continue;
        WRITE_ONCE(t->sessions, t->sessions & ~(1u << slot));
        target_ended(t, slot);
    }
    spin_unlock_irq(&tasks_lock, flags);
    smp_sync_others(); // no sample under way has seen the bit
}

static void ended(struct task *t)
{
    if (!READ_ONCE(slots_used))
        return;
    u32 flags = spin_lock_irq(&tasks_lock);
    tell(t, t->parent ? t->parent->id : 0, SPROFILE_T_ENDED);
    u32 bits = t->sessions;
    WRITE_ONCE(t->sessions, 0);
    for (; bits; bits &= bits - 1)
        target_ended(t, (u32)__builtin_ctz(bits));
    spin_unlock_irq(&tasks_lock, flags);
}

static const struct task_observer profile_observer = {
    .forked = forked,
    .execed = execed,
    .guarded = guarded,
    .ended = ended,
};
TASK_OBSERVER(profile_observer);
