// How streams begin, pause and end.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/stream/stream_private.h"
#include "kernel/task/permission.h"
#include "kernel/task/task.h"

struct mutex streams_lock = MUTEX_INIT(streams_lock, "streams");
struct stream *streams[STREAMS_MAX];

void stream_init(struct stream *s, const struct stream_kind *kind,
                 struct task *task, u32 flags)
{
    struct task *profiler = current_task();
    bool from_exec = flags & SPROFILE_O_FROM_EXEC;
    *s = (struct stream){
        .kind = kind,
        .task = task,
        .profiler = profiler,
        .owner = profiler->id,
        .uid = READ_ONCE(profiler->euid),
        .limited = !may_profile_everything(),
        .children = flags & SPROFILE_O_CHILDREN,
        .wait_exec = from_exec,
        .paused = from_exec,
    };
    if (task)
        task_ref(task);
    task_ref(profiler);
}

void stream_release(struct stream *s)
{
    if (s->task)
        task_unref(s->task);
    task_unref(s->profiler);
}

int stream_find_slot(struct stream *s)
{
    mutex_assert_held(&streams_lock);
    u32 all = 0, own = 0, slot = STREAMS_MAX;
    for (u32 i = STREAMS_MAX; i-- > 0;) {
        if (!streams[i]) {
            slot = i;
        } else if (streams[i]->kind == s->kind) {
            all++;
            own += streams[i]->uid == s->uid;
        }
    }
    if (slot == STREAMS_MAX || all >= s->kind->max_streams ||
        (s->limited && own >= MAX(s->kind->max_streams / 4, 1u)))
        return -EUSERS;
    s->slot = slot;
    return 0;
}

void stream_publish(struct stream *s)
{
    mutex_assert_held(&streams_lock);
    assert(s->slot < STREAMS_MAX && !streams[s->slot]);
    u32 flags = spin_lock_irq(&tasks_lock);
    targets_begin(s);
    WRITE_ONCE(streams[s->slot], s);
    spin_unlock_irq(&tasks_lock, flags);
    if (stream_measures(s))
        s->kind->start(s);
}

void stream_withdraw(struct stream *s)
{
    mutex_assert_held(&streams_lock);
    assert(streams[s->slot] == s);
    u32 flags = spin_lock_irq(&tasks_lock);
    targets_end(s);
    WRITE_ONCE(streams[s->slot], NULL);
    spin_unlock_irq(&tasks_lock, flags);
    smp_quiesce_others(); // irq_deferred and samples that saw it have ended
}

u64 stream_elapsed_ns(const struct stream *s)
{
    mutex_assert_held(&streams_lock);
    u64 running = stream_measures(s) ? clock_now_ns() - s->since_ns : 0;
    return s->elapsed_ns + running;
}

void stream_set_paused(struct stream *s, bool paused, bool wait_exec)
{
    mutex_assert_held(&streams_lock);
    if (stream_measures(s))
        s->kind->stop(s);
    s->wait_exec = wait_exec;
    s->paused = paused || wait_exec;
    if (stream_measures(s))
        s->kind->start(s);
    else if (s->kind->once)
        targets_silence(s);
}

void stream_pause(struct stream *s, bool pause)
{
    mutex_lock(&streams_lock);
    stream_set_paused(s, pause, s->wait_exec && pause);
    mutex_unlock(&streams_lock);
}
