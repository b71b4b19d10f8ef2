// The kernel box of a task: an answerbox that the kernel serves. A phone to it
// carries the commands of one stream, which samples, counts or traces events,
// or of the trace of calls.
//
// `lock`, a mutex, serialises the commands of a phone. `guard` is held while
// `stream` and `read` change, and while sleepers and poll() check them, so that
// these checks need not sleep. DATA_READ is answered in the context of the
// thread that waits for the answer: records are copied straight from the ring
// to its buffer.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/ipc/ipc.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/call_trace.h"
#include "kernel/profile/counts.h"
#include "kernel/profile/sample.h"
#include "kernel/profile/trace_session.h"
#include "kernel/stream/stream.h"
#include "kernel/task/permission.h"
#include "kernel/task/task.h"

#define READ_TIMEOUT_NS (500 * NSEC_PER_MSEC)

struct kbox {
    struct mutex lock;
    struct spinlock guard;
    struct stream *stream;
    bool traces;       // the trace of calls is this phone's; `lock`
    struct call *read; // a DATA_READ that is not answered yet
    u64 read_deadline;
    bool at_once; // the next read does not wait: the stream was paused
    bool hung_up;
};

SLAB_CACHE(kbox_cache, struct kbox);

static int connected(struct phone *p)
{
    assert(!p->server_data);
    struct kbox *k = slab_alloc(&kbox_cache);
    if (!k)
        return -ENOMEM;
    *k = (struct kbox){ 0 };
    mutex_init(&k->lock, "kernel box");
    spin_init(&k->guard, "kernel box");
    p->server_data = k;
    return 0;
}

static void freed(struct phone *p)
{
    struct kbox *k = p->server_data;
    assert(!k->stream && !k->read);
    slab_free(&kbox_cache, k);
}

// Sets the stream and the pending read. Returns the read that was pending.
static struct call *set(struct kbox *k, struct stream *s, struct call *read)
{
    mutex_assert_held(&k->lock);
    spin_lock(&k->guard);
    struct call *before = k->read;
    k->stream = s;
    k->read = read;
    if (read)
        k->read_deadline = k->at_once ? 0 : clock_now_ns() + READ_TIMEOUT_NS;
    k->at_once &= !read;
    spin_unlock(&k->guard);
    return before;
}

// --- commands ---------------------------------------------------------------

// Checked at each begin: the phone may now be held by a task of another user.
static int may_begin(const struct task *t)
{
    bool may = t ? may_profile(t) : may_profile_everything();
    return may ? 0 : -EPERM;
}

static int begin(struct phone *p, const struct ipc_call *m)
{
    struct kbox *k = p->server_data;
    mutex_assert_held(&k->lock);
    bool system = m->arg[0] == SPROFILE_M_SYSTEM_BEGIN;
    struct sprofile_options o;
    struct stream *s;
    if (k->stream || k->traces)
        return -EBUSY;
    if (copy_from_user(&o, m->arg[1], sizeof(o)))
        return -EFAULT;
    int err = may_begin(system ? NULL : p->box->task);
    if (err)
        return err;
    err = session_begin(system ? NULL : p->box->task, &o, &p->pollers, &s);
    if (!err)
        set(k, s, NULL);
    return err;
}

static int begin_counting(struct phone *p, const struct ipc_call *m)
{
    struct kbox *k = p->server_data;
    mutex_assert_held(&k->lock);
    struct sprofile_count_options o;
    struct stream *s;
    if (k->stream || k->traces)
        return -EBUSY;
    if (copy_from_user(&o, m->arg[1], sizeof(o)))
        return -EFAULT;
    int err = may_begin(p->box->task);
    if (!err)
        err = counts_begin(p->box->task, &o, &s);
    if (!err)
        set(k, s, NULL);
    return err;
}

static int begin_events(struct phone *p, const struct ipc_call *m)
{
    struct kbox *k = p->server_data;
    mutex_assert_held(&k->lock);
    struct stream *s;
    if (k->stream || k->traces)
        return -EBUSY;
    int err = may_begin(NULL);
    if (!err)
        err = trace_session_begin(m->arg[1], &p->pollers, &s);
    if (!err)
        set(k, s, NULL);
    return err;
}

static int read_counts(struct kbox *k, const struct ipc_call *m)
{
    mutex_assert_held(&k->lock);
    struct sprofile_counts *c = kmalloc(sizeof(*c));
    if (!c)
        return -ENOMEM;
    counts_read(k->stream, c);
    int err = copy_to_user(m->arg[1], c, sizeof(*c));
    kfree(c);
    return err;
}

static int end(struct kbox *k)
{
    mutex_assert_held(&k->lock);
    struct stream *s = k->stream;
    struct call *read = set(k, NULL, NULL);
    s->kind->end(s);
    if (read) // no records are left to read
        call_refuse(read, -ESHUTDOWN);
    return 0;
}

static int serve_counting(struct kbox *k, const struct ipc_call *m)
{
    switch (m->arg[0]) {
    case SPROFILE_M_COUNT_READ:
        return read_counts(k, m);
    case SPROFILE_M_END:
        return end(k);
    default:
        return -EINVAL;
    }
}

// Pausing makes a pending read due, and the next one at once: no more samples
// follow.
static int set_paused(struct phone *p, bool pause)
{
    struct kbox *k = p->server_data;
    mutex_assert_held(&k->lock);
    stream_pause(k->stream, pause);
    spin_lock(&k->guard);
    k->at_once = pause;
    if (pause)
        k->read_deadline = 0;
    spin_unlock(&k->guard);
    waitq_wake_all(&p->pollers);
    return 0;
}

static int info(struct kbox *k, const struct ipc_call *m)
{
    mutex_assert_held(&k->lock);
    struct sprofile_info i;
    if (k->stream->kind->info)
        return k->stream->kind->info(k->stream, m->arg[1]);
    session_info(k->stream, &i);
    return copy_to_user(m->arg[1], &i, sizeof(i));
}

static int begin_trace(struct kbox *k, const struct ipc_call *m)
{
    mutex_assert_held(&k->lock);
    if (k->stream || k->traces)
        return -EBUSY;
    int err = call_trace_begin(m->arg[1]);
    k->traces = !err;
    return err;
}

static int end_trace(struct kbox *k)
{
    mutex_assert_held(&k->lock);
    call_trace_end();
    k->traces = false;
    return 0;
}

// The commands of the trace of calls. Everybody who may begin one may read and
// reset it. -ENOSYS: another command.
static int serve_trace(struct kbox *k, const struct ipc_call *m)
{
    mutex_assert_held(&k->lock);
    u32 command = m->arg[0];
    bool is_for_all = (command >= SPROFILE_M_CALLS_BEGIN &&
                       command <= SPROFILE_M_CALLS_RESET) ||
                      command == SPROFILE_M_CALLS_NAMES;
    if (is_for_all && !may_profile_everything())
        return -EPERM;
    switch (command) {
    case SPROFILE_M_CALLS_BEGIN:
        return begin_trace(k, m);
    case SPROFILE_M_CALLS_INFO:
        return call_trace_info(m->arg[1]);
    case SPROFILE_M_CALLS_READ:
        return call_trace_read(m->arg[1], m->arg[2], m->arg[3] == 1);
    case SPROFILE_M_CALLS_RESET:
        return call_trace_reset();
    case SPROFILE_M_CALLS_NAMES:
        return call_trace_names(m->arg[1], m->arg[2]);
    }
    if (!k->traces)
        return -ENOSYS;
    if (command == SPROFILE_M_END)
        return end_trace(k);
    if (command != SPROFILE_M_PAUSE)
        return -EINVAL;
    call_trace_pause(m->arg[1] != 0);
    return 0;
}

static int serve(struct phone *p, const struct ipc_call *m)
{
    struct kbox *k = p->server_data;
    mutex_assert_held(&k->lock);
    if (k->hung_up)
        return -ECONNRESET;
    if (m->method != IPC_M_SPROFILE_ALL)
        return -EINVAL;
    u32 command = m->arg[0];
    int result = serve_trace(k, m);
    if (result != -ENOSYS)
        return result;
    if (command == SPROFILE_M_TASK_BEGIN || command == SPROFILE_M_SYSTEM_BEGIN)
        return begin(p, m);
    if (command == SPROFILE_M_COUNT_BEGIN)
        return begin_counting(p, m);
    if (command == SPROFILE_M_TRACE_BEGIN)
        return begin_events(p, m);
    if (!k->stream)
        return -ESHUTDOWN;
    if (!k->stream->readers)
        return serve_counting(k, m);
    switch (command) {
    case SPROFILE_M_END:
        return end(k);
    case SPROFILE_M_PAUSE:
        if (!m->arg[1] && k->stream->kind->once)
            return -EINVAL;
        return set_paused(p, m->arg[1] != 0);
    case SPROFILE_M_INFO:
        return info(k, m);
    case SPROFILE_M_TRACE_COPY:
        return k->stream->kind->copy
                   ? k->stream->kind->copy(k->stream, m->arg[1], m->arg[2])
                   : -EINVAL;
    case SPROFILE_M_MAP:
        stream_consume(k->stream);
        return stream_map(k->stream);
    default:
        return -EINVAL;
    }
}

static bool start_read(struct kbox *k, struct call *c)
{
    mutex_assert_held(&k->lock);
    bool is_read =
        c->method == IPC_M_SPROFILE_ALL && c->arg[0] == SPROFILE_M_DATA_READ;
    if (!is_read || !k->stream || !k->stream->readers || k->read)
        return false;
    stream_consume(k->stream);
    set(k, k->stream, c);
    return true;
}

static bool second_read(struct kbox *k, const struct ipc_call *m)
{
    mutex_assert_held(&k->lock);
    return k->read && m->method == IPC_M_SPROFILE_ALL &&
           m->arg[0] == SPROFILE_M_DATA_READ;
}

static void called(struct phone *p, struct call *c)
{
    assert_may_sleep();
    struct kbox *k = p->server_data;
    struct ipc_call answer;
    call_describe(c, 0, &answer);
    mutex_lock(&k->lock);
    bool later = start_read(k, c);
    if (!later && second_read(k, &answer))
        answer.retval = -EBUSY;
    else if (!later)
        answer.retval = serve(p, &answer);
    mutex_unlock(&k->lock);
    if (later)
        waitq_wake_all(&p->pollers); // their deadline has changed
    else
        call_answer(c, &answer);
}

// --- the deferred answer to DATA_READ ---------------------------------------

static bool answer_ready(struct phone *p)
{
    struct kbox *k = p->server_data;
    spin_lock(&k->guard);
    bool is = k->read && (stream_readable(k->stream) ||
                          clock_now_ns() >= k->read_deadline);
    spin_unlock(&k->guard);
    return is;
}

static u64 deadline(struct phone *p)
{
    struct kbox *k = p->server_data;
    spin_lock(&k->guard);
    u64 at = k->read ? k->read_deadline : WAIT_FOREVER;
    spin_unlock(&k->guard);
    return at;
}

// Spans or records, as arg[3] requests.
static int take_records(struct stream *s, const struct ipc_call *m)
{
    return m->arg[3] == SPROFILE_READ_SPANS
               ? stream_map_ring(s, m->arg[1], m->arg[2])
               : stream_read(s, m->arg[1], m->arg[2]);
}

static void send_answer(struct phone *p)
{
    assert_may_sleep();
    struct kbox *k = p->server_data;
    struct call *c = NULL;
    struct ipc_call answer;
    mutex_lock(&k->lock);
    if (answer_ready(p)) {
        c = k->read;
        call_describe(c, 0, &answer);
        bool ended = stream_ended(k->stream);
        int n = take_records(k->stream, &answer);
        // The last records of an ended task are read before -ESHUTDOWN is
        // returned.
        answer.retval = n == 0 && ended ? -ESHUTDOWN : n;
        set(k, k->stream, NULL);
    }
    mutex_unlock(&k->lock);
    if (c)
        call_answer(c, &answer);
}

static void hung_up(struct phone *p)
{
    struct kbox *k = p->server_data;
    mutex_lock(&k->lock);
    assert(!k->hung_up);
    k->hung_up = true;
    if (k->stream)
        end(k);
    if (k->traces)
        end_trace(k);
    mutex_unlock(&k->lock);
}

const struct box_server kernel_box = {
    .connected = connected,
    .called = called,
    .answer_ready = answer_ready,
    .deadline = deadline,
    .send_answer = send_answer,
    .hung_up = hung_up,
    .freed = freed,
};
