// Phones and answerboxes as descriptors, and the system calls on them.
//
// A phone is a file like any other: fork shares it. An answerbox belongs to one
// task: a descriptor of it that a child has inherited keeps it open, but the
// child cannot use it.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/file.h"
#include "kernel/fs/poll.h"
#include "kernel/ipc/ipc.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/permission.h"
#include "kernel/task/task.h"

// --- phones -----------------------------------------------------------------

static int connect(struct answerbox *b)
{
    int fd = phone_install(b);
    box_unref(b);
    return fd == -ECONNRESET ? -ESRCH : fd; // it has just ended
}

static int connect_naming(void)
{
    struct answerbox *b = naming_box();
    return b ? connect(b) : -ENOENT;
}

static int connect_task(u32 id, enum task_box which)
{
    struct task *t = task_find(id);
    if (!t)
        return -ESRCH;
    if (which == KERNEL_BOX && !may_profile(t)) {
        task_unref(t);
        return -EPERM;
    }
    struct answerbox *b = task_box(t, which);
    int err = b                                               ? 0
              : READ_ONCE(t->zombie) || READ_ONCE(t->exiting) ? -ESRCH
                                                              : -ENOMEM;
    task_unref(t);
    return b ? connect(b) : err;
}

s32 sys_ipc_connect(u32 task)
{
    return task ? connect_task(task, TASK_BOX) : connect_naming();
}

s32 sys_kbox_connect(u32 task)
{
    return connect_task(task, KERNEL_BOX);
}

s32 sys_ipc_hangup(u32 phone_fd)
{
    struct fd_ref r;
    int err = fd_borrow(phone_fd, &r);
    if (err)
        return err;
    struct phone *phone = phone_of(r.file);
    if (phone)
        phone_hang_up(phone);
    else
        err = -EINVAL;
    fd_return(&r);
    return err;
}

// --- answerboxes ------------------------------------------------------------

static u32 box_poll(struct file *f, struct poll_wait *pw)
{
    assert_checked(f->data);
    struct answerbox *b = f->data;
    if (b->task != current_task())
        return POLLERR;
    poll_register(pw, &b->pollers);
    u32 events = box_ready(b) ? POLLIN : 0;
    return READ_ONCE(b->closed) ? events | POLLHUP : events;
}

static void close_box(struct file *f)
{
    struct answerbox *b = f->data;
    assert(READ_ONCE(b->descriptors));
    if (!__atomic_sub_fetch(&b->descriptors, 1, __ATOMIC_ACQ_REL))
        box_close(b);
    box_unref(b);
}

static const struct file_ops box_ops = { .poll = box_poll,
                                         .release = close_box };

// Consumes the reference to the box.
static int box_install(struct answerbox *b, u32 flags)
{
    struct file *f = file_alloc(&box_ops, O_RDWR);
    if (!f) {
        box_unref(b);
        return -ENOMEM;
    }
    __atomic_fetch_add(&b->descriptors, 1, __ATOMIC_RELAXED);
    f->data = b;
    int err = flags & IPC_BOX_NAMING ? naming_set(b) : 0;
    if (!err)
        return fd_install(f, true, 0);
    file_unref(f);
    return err;
}

s32 sys_ipc_box(u32 flags)
{
    if (flags & ~IPC_BOX_NAMING)
        return -EINVAL;
    if (flags & IPC_BOX_NAMING && !is_root())
        return -EPERM;
    struct answerbox *box = task_box(current_task(), TASK_BOX);
    return box ? box_install(box, flags) : -ENOMEM;
}

// The caller's own answerbox behind a descriptor.
static int borrow_box(u32 fd, struct fd_ref *r, struct answerbox **out)
{
    int err = fd_borrow(fd, r);
    if (err)
        return err;
    *out = r->file->data;
    if (r->file->ops != &box_ops)
        err = -EINVAL;
    else if ((*out)->task != current_task())
        err = -EPERM;
    if (err)
        fd_return(r);
    return err;
}

static int wait_for_call(struct answerbox *b, u32 to, u64 deadline)
{
    struct ipc_call call;
    int err = box_wait(b, &call, deadline);
    if (!err && unlikely(copy_to_user(to, &call, sizeof(call)))) {
        box_put_back(b, call.id);
        err = -EFAULT;
    }
    return err;
}

// --- calls ------------------------------------------------------------------

s32 sys_ipc_call(u32 phone_fd, u32 call)
{
    struct ipc_call m;
    struct fd_ref r;
    if (copy_from_user(&m, call, sizeof(m)))
        return -EFAULT;
    int err = fd_borrow(phone_fd, &r);
    if (err)
        return err;
    bool waits = m.flags & IPC_F_WAIT;
    struct phone *phone = phone_of(r.file);
    err = phone ? phone_call(phone, &m) : -EINVAL;
    fd_return(&r);
    if (err && err != -EINTR)
        return err;
    if (waits && !err
            ? copy_to_user(call, &m, sizeof(m))
            : user_store_u32(call + offsetof(struct ipc_call, id), m.id))
        return -EFAULT; // the call was sent nevertheless
    return err;
}

static int wait_for_answer(struct phone *p, u32 to, u64 deadline)
{
    struct ipc_call answer;
    int err = phone_wait(p, &answer, deadline);
    if (!err && copy_to_user(to, &answer, sizeof(answer)))
        err = -EFAULT;
    return err;
}

s32 sys_ipc_wait(u32 box_fd, u32 call, s32 timeout)
{
    struct fd_ref r;
    struct answerbox *box;
    u64 deadline = (s32)timeout < 0 ? WAIT_FOREVER
                                    : clock_now_ns() + timeout * NSEC_PER_MSEC;
    int err = fd_borrow(box_fd, &r);
    if (err)
        return err;
    struct phone *phone = phone_of(r.file);
    if (phone) {
        err = wait_for_answer(phone, call, deadline);
        fd_return(&r);
        return err;
    }
    fd_return(&r);
    err = borrow_box(box_fd, &r, &box);
    if (err)
        return err;
    err = wait_for_call(box, call, deadline);
    fd_return(&r);
    return err;
}

// An interrupted wait is not restarted: that would send the answer again.
static int next_call(struct answerbox *box, u32 to)
{
    int err = wait_for_call(box, to, WAIT_FOREVER);
    return err == -ERESTARTNOHAND ? -EINTR : err;
}

s32 sys_ipc_answer(u32 box_fd, u32 call)
{
    struct ipc_call answer;
    struct fd_ref r;
    struct answerbox *box;
    if (copy_from_user(&answer, call, sizeof(answer)))
        return -EFAULT;
    if (answer.flags & ~IPC_F_NEXT)
        return -EINVAL;
    int result = borrow_box(box_fd, &r, &box);
    if (result)
        return result;
    result = box_answer(box, &answer);
    if (result >= 0 && (answer.flags & IPC_F_NEXT))
        result = next_call(box, call);
    fd_return(&r);
    return result;
}

static int forward(struct answerbox *box, u32 id, u32 to_fd,
                   const struct ipc_call *changed)
{
    struct fd_ref r;
    int err = fd_borrow(to_fd, &r);
    if (err)
        return err;
    struct phone *to = phone_of(r.file);
    err = to ? box_forward(box, id, to, changed) : -EINVAL;
    fd_return(&r);
    return err;
}

s32 sys_ipc_forward(u32 box_fd, u32 call_id, u32 phone_fd, u32 message)
{
    struct ipc_call changed;
    struct fd_ref r;
    struct answerbox *box;
    if (message && copy_from_user(&changed, message, sizeof(changed)))
        return -EFAULT;
    int err = borrow_box(box_fd, &r, &box);
    if (err)
        return err;
    err = forward(box, call_id, phone_fd, message ? &changed : NULL);
    fd_return(&r);
    return err;
}

// Root only: interrupts reveal when keys are pressed.
s32 sys_ipc_irq(u32 box_fd, u32 irq, u32 method)
{
    if (!is_root())
        return -EPERM;
    struct fd_ref r;
    struct answerbox *box;
    int err = borrow_box(box_fd, &r, &box);
    if (err)
        return err;
    err = irq_notify(box, irq, method != 0);
    fd_return(&r);
    return err;
}
