// Which tasks a stream measures, across fork, exec and exit.
//
// A task has a bit for each stream that it is a target of; a child inherits the
// bits of streams that want children. All of this changes under tasks_lock;
// samples and context switches read the bits of the running task. The reader of
// a stream with rings learns of forks, execs and exits of the targets, and of
// their threads' names, from records in the stream's event ring, so that each
// sample can be looked up in the program that ran at its time.

#include "arch/cpu.h"
#include "kernel/base/log.h"
#include "kernel/stream/stream_private.h"
#include "kernel/task/task.h"
#include "lib/string.h"

// Bits of streams; changed under tasks_lock.
static u32 inherited; // streams that want children
// Streams that have rings, and measure or may do so again. Also read without
// the lock.
static u32 reported;

static void add(struct stream *s, struct task *t)
{
    spin_assert_held(&tasks_lock);
    assert(!(t->streams & 1u << s->slot) && t->threads_running);
    WRITE_ONCE(t->streams, t->streams | 1u << s->slot);
    ADD_ONCE(s->live, 1);
}

// Adds `t` if it is a descendant of the stream's task, is not the profiler, and
// may be inspected by the profiler if the stream is limited.
static void add_descendant(struct task *t, void *arg)
{
    struct stream *s = arg;
    const struct task *up = t->parent;
    while (up && up != s->task)
        up = up->parent;
    bool may = !s->limited || credentials_may_inspect(s->profiler, t);
    if (up && may && t != s->profiler && t->threads_running)
        add(s, t);
}

void targets_begin(struct stream *s)
{
    spin_assert_held(&tasks_lock);
    u32 bit = 1u << s->slot;
    s->published_ns = clock_now_ns();
    if (s->readers)
        WRITE_ONCE(reported, reported | bit);
    // A task without running threads will not report its end.
    s->ended = s->task && !s->task->threads_running;
    if (s->task && !s->ended)
        add(s, s->task);
    if (s->ended || !s->children)
        return;
    inherited |= bit;
    task_for_each_locked(add_descendant, s);
}

static void silence(struct stream *s)
{
    spin_assert_held(&tasks_lock);
    WRITE_ONCE(reported, reported & ~(1u << s->slot));
}

void targets_silence(struct stream *s)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    silence(s);
    spin_unlock_irq(&tasks_lock, flags);
}

static void remove(struct task *t, void *arg)
{
    const struct stream *s = arg;
    WRITE_ONCE(t->streams, t->streams & ~(1u << s->slot));
}

void targets_end(struct stream *s)
{
    spin_assert_held(&tasks_lock);
    inherited &= ~(1u << s->slot);
    silence(s);
    task_for_each_locked(remove, s);
    remove(&kernel_task, s); // it is not in the task table
}

struct visit {
    u32 bit;
    void (*fn)(struct task *t, void *arg);
    void *arg;
};

static void visit(struct task *t, void *arg)
{
    const struct visit *v = arg;
    if (t->streams & v->bit)
        v->fn(t, v->arg);
}

void stream_each_target(struct stream *s, void (*fn)(struct task *, void *),
                        void *arg)
{
    struct visit v = { 1u << s->slot, fn, arg };
    if (s->children)
        task_for_each_locked(visit, &v);
    else
        visit(s->task, &v);
}

// --- event records ----------------------------------------------------------

union task_record {
    struct sprofile_task task;
    u8 bytes[sizeof(struct sprofile_task) + SPROFILE_PATH_MAX + 8];
};

// `name` is the task's or one of its threads'.
static void describe(union task_record *r, struct task *t, const char *name,
                     u32 parent, enum sprofile_task_kind kind)
{
    memset(r, 0, sizeof(*r));
    r->task.task = t->id;
    r->task.parent = parent;
    r->task.kind = (u16)kind;
    u32 flags = spin_lock_irq(&t->lock);
    strlcpy(r->task.name, name, sizeof(r->task.name));
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

// Wakes the readers at once if a ring is a quarter full: tasks may be created
// and end faster than the stream's callout checks.
static void put(struct stream *s, const struct sprofile_record *r)
{
    u32 flags = spin_lock_irq(&s->rings.event_lock);
    if (!ring_write(&s->rings.events, r, r->size))
        WRITE_ONCE(s->rings.events_lost, s->rings.events_lost + 1);
    spin_unlock_irq(&s->rings.event_lock, flags);
    if (stream_readable(s))
        waitq_wake_all(s->readers);
}

// Whether the stream's reader is to know of the task.
static bool wants(const struct stream *s, const struct task *t)
{
    if (!s->task || t->streams & 1u << s->slot)
        return true;
    return s->kind->names_all &&
           (!s->limited || credentials_may_inspect(s->profiler, t));
}

// To streams that were published after `after`.
static void report_since(u64 after, struct task *t, const char *name,
                         u32 parent, enum sprofile_task_kind kind)
{
    spin_assert_held(&tasks_lock);
    union task_record r;
    bool described = false;
    for (u32 left = reported; left; left &= left - 1) {
        struct stream *s = streams[__builtin_ctz(left)];
        if (s->published_ns < after || !wants(s, t))
            continue;
        if (!described)
            describe(&r, t, name, parent, kind);
        described = true;
        put(s, &r.task.head);
    }
}

static void report(struct task *t, const char *name, u32 parent,
                   enum sprofile_task_kind kind)
{
    report_since(0, t, name, parent, kind);
}

void stream_put_times(struct stream *s, const struct task *t,
                      enum sprofile_times_kind kind, u64 user, u64 kernel)
{
    spin_assert_held(&tasks_lock);
    struct sprofile_times r = {
        .head = { SPROFILE_R_TIMES, sizeof(r), (u16)this_cpu()->id, 0,
                  rdtsc() },
        .task = t->id,
        .kind = kind,
        .user = user,
        .kernel = kernel,
    };
    if (ring_used(&s->rings.events) < s->rings.events.size / 2)
        put(s, &r.head);
    else
        ADD_ONCE(s->rings.times_lost, 1);
}

// --- fork, exec and exit ----------------------------------------------------

static void forked(struct task *child, struct task *parent)
{
    spin_assert_held(&tasks_lock);
    u32 bits = parent->streams & inherited;
    WRITE_ONCE(child->streams, bits);
    for (; bits; bits &= bits - 1)
        ADD_ONCE(streams[__builtin_ctz(bits)]->live, 1);
    report(child, child->name, parent->id, SPROFILE_T_FORKED);
}

static void named(struct thread *t)
{
    report(t->task, t->name, t->tid, SPROFILE_T_NAMED);
}

// A stream's reader asks for the threads that there are after the stream has
// begun. Of one that began before and has left since, this is the only record.
static void leaves(struct thread *t)
{
    report_since(t->start_ns, t->task, t->name, t->tid, SPROFILE_T_NAMED);
}

static void new_program(struct stream *s)
{
    mutex_assert_held(&streams_lock);
    if (s->wait_exec)
        stream_set_paused(s, false, false);
    else if (s->kind->execed)
        s->kind->execed(s);
}

static void execed(struct task *t)
{
    if (READ_ONCE(reported)) {
        u32 flags = spin_lock_irq(&tasks_lock);
        report(t, t->name, t->parent ? t->parent->id : 0, SPROFILE_T_EXECED);
        spin_unlock_irq(&tasks_lock, flags);
    }
    if (!READ_ONCE(t->streams))
        return;
    mutex_lock(&streams_lock);
    for (u32 i = 0; i < STREAMS_MAX; i++) {
        if (streams[i] && streams[i]->task == t)
            new_program(streams[i]);
    }
    mutex_unlock(&streams_lock);
}

// The task's bit is cleared, so nothing of it is measured any more; records so
// far are in the rings. Returns the stream's bit if this was the last target
// and its kind has a callback `all_ended`.
static u32 drop_target(struct task *t, u32 slot)
{
    spin_assert_held(&tasks_lock);
    assert(slot < STREAMS_MAX);
    struct stream *s = streams[slot];
    s->kind->target_left(s, t);
    ADD_ONCE(s->live, -1u);
    if (s->live)
        return 0;
    WRITE_ONCE(s->ended, true);
    silence(s);
    if (s->readers)
        waitq_wake_all(s->readers);
    return s->kind->all_ended ? 1u << slot : 0;
}

// Notifies the kinds of streams that lost their last target under tasks_lock.
// Since then a stream may have been ended, and another may be in its slot:
// hence the checks.
static void notify_ended(u32 bits)
{
    if (!bits)
        return;
    mutex_lock(&streams_lock);
    for (; bits; bits &= bits - 1) {
        struct stream *s = streams[__builtin_ctz(bits)];
        if (s && s->ended && s->kind->all_ended)
            s->kind->all_ended(s);
    }
    mutex_unlock(&streams_lock);
}

// A program with more rights than its user, or with secrets, begins: streams of
// ordinary users may not see it, and lose it as a target.
static void guarded(struct task *t)
{
    if (!READ_ONCE(t->streams))
        return;
    u32 over = 0, flags = spin_lock_irq(&tasks_lock);
    for (u32 bits = t->streams; bits; bits &= bits - 1) {
        u32 slot = (u32)__builtin_ctz(bits);
        if (!streams[slot]->limited)
            continue;
        WRITE_ONCE(t->streams, t->streams & ~(1u << slot));
        over |= drop_target(t, slot);
    }
    spin_unlock_irq(&tasks_lock, flags);
    smp_quiesce_others(); // a sample that saw the bit has ended
    notify_ended(over);
}

// The current thread is the last of `t`. What it has released until now is
// measured.
static void released(struct task *t)
{
    if (!READ_ONCE(t->streams) && !READ_ONCE(reported))
        return;
    u32 over = 0, flags = spin_lock_irq(&tasks_lock);
    report(t, t->name, t->parent ? t->parent->id : 0, SPROFILE_T_ENDED);
    for (u32 left = reported; left; left &= left - 1) {
        struct stream *s = streams[__builtin_ctz(left)];
        if (!s->task)
            s->kind->target_left(s, t);
    }
    u32 bits = t->streams;
    WRITE_ONCE(t->streams, 0);
    for (; bits; bits &= bits - 1)
        over |= drop_target(t, (u32)__builtin_ctz(bits));
    spin_unlock_irq(&tasks_lock, flags);
    notify_ended(over);
}

static const struct task_observer stream_observer = {
    .forked = forked,
    .named = named,
    .leaves = leaves,
    .execed = execed,
    .guarded = guarded,
    .released = released,
};
TASK_OBSERVER(stream_observer);
