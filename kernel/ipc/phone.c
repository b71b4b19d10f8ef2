// Phones to kernel boxes: a file that carries calls to a task's kernel box and
// answers back.
//
// phone->lock (mutex) guards the answers and the session; it is not held while
// the caller sleeps. DATA_READ is answered in the context of whoever waits for
// it, so that samples go straight from the ring into the reader's buffer.

#include "kernel/errno.h"
#include "kernel/fs/poll.h"
#include "kernel/fs/vfs.h"
#include "kernel/init/log.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/sample.h"
#include "kernel/sched/task.h"
#include "kernel/syscall/syscall.h"

#define ANSWERS_MAX 16
#define READ_TIMEOUT_NS (500 * NSEC_PER_MSEC)

struct phone {
    struct mutex lock;
    struct task *task; // whose kernel box this is connected to; referenced
    struct session *session;
    struct waitq queue;
    u32 last_id;
    u32 answer_count, answer_first;
    struct ipc_call answers[ANSWERS_MAX];
    bool reading; // a DATA_READ is not answered yet
    struct ipc_call read;
    u64 read_deadline;
};

SLAB_CACHE(phone_cache, struct phone);

static int begin(struct phone *p, const struct ipc_call *c, bool system)
{
    struct sprofile_options o;
    if (p->session)
        return -EBUSY;
    if (copy_from_user(&o, c->arg[1], sizeof(o)))
        return -EFAULT;
    return session_begin(system ? NULL : p->task, &o, &p->queue, &p->session);
}

static int end(struct phone *p)
{
    session_end(p->session);
    p->session = NULL;
    if (p->reading) { // its answer: there is nothing to read any more
        p->reading = false;
        p->read.retval = -ESHUTDOWN;
        p->answers[(p->answer_first + p->answer_count++) % ANSWERS_MAX] =
            p->read;
    }
    return 0;
}

static int info(struct phone *p, const struct ipc_call *c)
{
    struct sprofile_info i;
    session_info(p->session, &i);
    return copy_to_user(c->arg[1], &i, sizeof(i));
}

// Starts a read; it is answered later (1).
static int start_read(struct phone *p, const struct ipc_call *c)
{
    if (p->reading)
        return -EBUSY;
    p->reading = true;
    p->read = *c;
    p->read_deadline = clock_now_ns() + READ_TIMEOUT_NS;
    return 1;
}

// The box's work: 0 or more and it is the answer, -errno likewise; *later when
// the answer comes another time.
static int serve(struct phone *p, const struct ipc_call *c, bool *later)
{
    if (c->method != IPC_M_SPROFILE_ALL)
        return -EINVAL;
    u32 command = c->arg[0];
    if (command == SPROFILE_M_TASK_BEGIN || command == SPROFILE_M_SYSTEM_BEGIN)
        return begin(p, c, command == SPROFILE_M_SYSTEM_BEGIN);
    if (!p->session)
        return -ESHUTDOWN;
    switch (command) {
    case SPROFILE_M_END:
        return end(p);
    case SPROFILE_M_PAUSE:
        session_pause(p->session, c->arg[1] != 0);
        return 0;
    case SPROFILE_M_INFO:
        return info(p, c);
    case SPROFILE_M_DATA_READ: {
        int result = start_read(p, c);
        *later = result == 1;
        return result;
    }
    default:
        return -EINVAL;
    }
}

static int call(struct phone *p, struct ipc_call *c)
{
    if (p->answer_count + p->reading + 1 >= ANSWERS_MAX)
        return -EAGAIN; // fetch some answers first
    c->id = ++p->last_id;
    bool later = false;
    c->retval = serve(p, c, &later);
    if (!later) {
        u32 at = (p->answer_first + p->answer_count++) % ANSWERS_MAX;
        p->answers[at] = *c;
    }
    return 0;
}

// --- answers ---------------------------------------------------------------------------

static bool read_is_due(struct phone *p)
{
    return p->reading && (session_readable(p->session) ||
                          clock_now_ns() >= p->read_deadline);
}

static bool ready(struct phone *p)
{
    return p->answer_count || read_is_due(p);
}

static void answer_read(struct phone *p, struct ipc_call *out)
{
    bool ended = session_ended(p->session);
    int n = session_read(p->session, p->read.arg[1], p->read.arg[2]);
    p->reading = false;
    *out = p->read;
    // The last records of a task that has ended come first, then the news.
    out->retval = n == 0 && ended ? -ESHUTDOWN : n;
}

static bool take_answer(struct phone *p, struct ipc_call *out)
{
    bool got = true;
    mutex_lock(&p->lock);
    if (p->answer_count) {
        *out = p->answers[p->answer_first];
        p->answer_first = (p->answer_first + 1) % ANSWERS_MAX;
        p->answer_count--;
    } else if (read_is_due(p)) {
        answer_read(p, out);
    } else {
        got = false;
    }
    mutex_unlock(&p->lock);
    return got;
}

static u64 wait_deadline(struct phone *p, u64 deadline)
{
    return p->reading ? MIN(deadline, p->read_deadline) : deadline;
}

static int wait_answer(struct phone *p, struct ipc_call *out, u64 deadline)
{
    while (!take_answer(p, out)) {
        if (!p->answer_count && !p->reading)
            return -ENOENT; // no call is under way: nothing will ever come
        int err = wait_event(&p->queue, ready(p), WAIT_INTERRUPTIBLE,
                             wait_deadline(p, deadline));
        if (err == -EINTR)
            return -ERESTARTNOHAND;
        if (err && clock_now_ns() >= deadline)
            return -ETIMEDOUT;
    }
    return 0;
}

// --- the file ----------------------------------------------------------------------------

static u32 phone_poll(struct file *f, struct poll_wait *pw)
{
    struct phone *p = f->data;
    poll_register(pw, &p->queue);
    return ready(p) ? POLLIN : 0;
}

static void phone_release(struct file *f)
{
    struct phone *p = f->data;
    if (p->session)
        session_end(p->session);
    task_unref(p->task);
    slab_free(&phone_cache, p);
}

static const struct file_ops phone_ops = { .poll = phone_poll,
                                           .release = phone_release };

static int get_phone(u32 fd, struct file **f)
{
    int err = fd_get(fd, f);
    if (err)
        return err;
    if ((*f)->ops == &phone_ops)
        return 0;
    file_unref(*f);
    return -EINVAL;
}

SYSCALL_HANDLER(kbox_connect)
{
    struct task *t = task_find(a);
    if (!t || t->zombie) {
        if (t)
            task_unref(t);
        return -ESRCH;
    }
    struct phone *p = slab_alloc(&phone_cache);
    struct file *file = p ? file_alloc(&phone_ops, O_RDWR) : NULL;
    if (!file) {
        if (p)
            slab_free(&phone_cache, p);
        task_unref(t);
        return -ENOMEM;
    }
    *p = (struct phone){ .task = t };
    mutex_init(&p->lock, "phone");
    waitq_init(&p->queue, "phone");
    file->data = p;
    return fd_install(file, true, 0);
}

SYSCALL_HANDLER(ipc_call)
{
    struct ipc_call message;
    struct file *file;
    int err = get_phone(a, &file);
    if (err)
        return err;
    struct phone *p = file->data;
    if (copy_from_user(&message, b, sizeof(message))) {
        err = -EFAULT;
    } else {
        mutex_lock(&p->lock);
        err = call(p, &message);
        mutex_unlock(&p->lock);
    }
    if (!err && user_store_u32(b + offsetof(struct ipc_call, id), message.id))
        err = -EFAULT;
    waitq_wake_all(&p->queue);
    file_unref(file);
    return err;
}

// c: time-out in milliseconds, negative: none.
SYSCALL_HANDLER(ipc_wait)
{
    struct ipc_call answer;
    struct file *file;
    int err = get_phone(a, &file);
    if (err)
        return err;
    u64 deadline = (s32)c < 0 ? WAIT_FOREVER
                              : clock_now_ns() + c * NSEC_PER_MSEC;
    err = wait_answer(file->data, &answer, deadline);
    if (!err && copy_to_user(b, &answer, sizeof(answer)))
        err = -EFAULT;
    file_unref(file);
    return err;
}
