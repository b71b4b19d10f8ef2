// The answerboxes of a task: its own, and the one that the kernel serves on its
// behalf; and the naming service's box.
//
// `boxes_lock` guards task->answerbox, task->kbox and `naming`; each of these
// holds a reference. A box is closed without this lock.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/ipc/ipc.h"
#include "kernel/task/task.h"

static struct spinlock boxes_lock = SPINLOCK_INIT("boxes");
static struct answerbox *naming;
static struct answerbox ended_box; // marks a task that has ended

static struct answerbox **slot_of(struct task *t, enum task_box which)
{
    return which == KERNEL_BOX ? &t->kbox : &t->answerbox;
}

static struct answerbox *get(struct answerbox **slot, struct answerbox *new)
{
    spin_lock(&boxes_lock);
    if (!*slot && new) {
        box_ref(new);
        WRITE_ONCE(*slot, new); // task_box reads it without the lock
    }
    struct answerbox *b = *slot;
    if (b == &ended_box)
        b = NULL;
    if (b)
        box_ref(b);
    spin_unlock(&boxes_lock);
    return b;
}

struct answerbox *task_box(struct task *t, enum task_box which)
{
    assert_may_sleep();
    struct answerbox **slot = slot_of(t, which);
    struct answerbox *b = get(slot, NULL);
    if (b || READ_ONCE(*slot) == &ended_box)
        return b;
    struct answerbox *new =
        box_create(t, which == KERNEL_BOX ? &kernel_box : NULL);
    if (!new)
        return NULL;
    b = get(slot, new); // another thread may have set it first
    box_unref(new);
    return b;
}

// Clears *slot if it refers to `b`, and returns what it referred to.
static struct answerbox *leave(struct answerbox **slot, struct answerbox *b)
{
    spin_assert_held(&boxes_lock);
    if (*slot != b)
        return NULL;
    WRITE_ONCE(*slot, NULL);
    return b;
}

void task_box_closed(struct answerbox *b)
{
    assert(READ_ONCE(b->closed));
    spin_lock(&boxes_lock);
    struct answerbox *own = leave(&b->task->answerbox, b);
    struct answerbox *named = leave(&naming, b);
    spin_unlock(&boxes_lock);
    if (own)
        box_unref(own);
    if (named)
        box_unref(named);
}

int naming_set(struct answerbox *b)
{
    assert(!b->server);
    int err = 0;
    spin_lock(&boxes_lock);
    if (naming && naming != b) {
        err = -EBUSY;
    } else if (!naming) {
        box_ref(b);
        naming = b;
    }
    spin_unlock(&boxes_lock);
    return err;
}

struct answerbox *naming_box(void)
{
    return get(&naming, NULL);
}

static void end(struct task *t, enum task_box which)
{
    struct answerbox **slot = slot_of(t, which);
    spin_lock(&boxes_lock);
    struct answerbox *b = *slot;
    WRITE_ONCE(*slot, &ended_box);
    spin_unlock(&boxes_lock);
    if (!b)
        return;
    // A kernel box stays open for its phones: they may still query the task
    // after it has ended.
    if (which == TASK_BOX)
        box_close(b);
    box_unref(b);
}

static void task_ended(struct task *t)
{
    end(t, TASK_BOX);
    end(t, KERNEL_BOX);
}

static const struct task_observer ipc_observer = { .ended = task_ended };
TASK_OBSERVER(ipc_observer);
