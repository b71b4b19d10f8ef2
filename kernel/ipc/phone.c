// Phones: the callers' ends.
//
// phone->lock guards the lists of calls and the counts. Sleepers and poll()
// read the counts without it: each is one aligned word, and a thread that
// changes one wakes the queue afterwards.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/ipc/ipc.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"
#include "kernel/task/users.h"
#include "kernel/trace/point.h"

#define PHONE_CHARGE \
    (sizeof(struct phone) + IPC_PHONE_CALLS * sizeof(struct call))

SLAB_CACHE_COUNTED(phone_cache, struct phone, refs);

static u32 last_phone_id; // atomic

static struct phone *phone_new(struct answerbox *b)
{
    struct phone *p = slab_alloc(&phone_cache);
    if (!p)
        return NULL;
    *p = (struct phone){ .refs = 1, .owner = current_task()->id, .box = b };
    p->id = __atomic_add_fetch(&last_phone_id, 1, __ATOMIC_RELAXED);
    spin_init(&p->lock, "phone");
    list_init(&p->all_node);
    list_init(&p->box_node);
    list_init(&p->hangup_node);
    list_init(&p->calls);
    list_init(&p->answers);
    waitq_init(&p->waiters, "ipc answer");
    waitq_init(&p->pollers, "ipc answer");
    box_ref(b);
    return p;
}

int phone_create(struct answerbox *b, struct phone **out)
{
    struct payer *payer;
    if (!charge_current(PHONE_CHARGE, &payer))
        return -ENFILE;
    struct phone *p = phone_new(b);
    if (!p) {
        user_discharge(payer, PHONE_CHARGE);
        return -ENOMEM;
    }
    p->payer = payer;
    int err = b->server ? b->server->connected(p) : 0;
    if (!err && !box_add_phone(b, p)) {
        assert(!b->server); // the kernel's boxes are never closed
        err = -ECONNRESET;
    }
    if (err) {
        phone_unref(p);
        return err;
    }
    connection_add(p);
    *out = p;
    return 0;
}

void phone_ref(struct phone *p)
{
    u32 old = __atomic_fetch_add(&p->refs, 1, __ATOMIC_RELAXED);
    assert(old); // there must be a reference already
}

void phone_unref(struct phone *p)
{
    u32 left = __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL);
    assert(left != ~0u);
    if (left)
        return;
    if (p->server_data)
        p->box->server->freed(p);
    box_unref(p->box);
    user_discharge(p->payer, PHONE_CHARGE);
    slab_free(&phone_cache, p);
}

// --- hanging up -------------------------------------------------------------

// A call that has not been answered yet, referenced; or NULL.
static struct call *open_call(struct phone *p)
{
    struct call *c = NULL;
    spin_lock(&p->lock);
    if (!list_empty(&p->calls)) {
        c = list_first(&p->calls, struct call, phone_node);
        call_ref(c);
    }
    spin_unlock(&p->lock);
    return c;
}

void phone_hang_up(struct phone *p)
{
    assert_may_sleep();
    assert_checked(READ_ONCE(p->refs));
    struct answerbox *b = p->box;
    struct call *c;
    spin_lock(&p->lock);
    bool again = p->hung_up;
    WRITE_ONCE(p->hung_up, true); // no new calls from here on
    spin_unlock(&p->lock);
    if (again)
        return;
    if (b->server)
        b->server->hung_up(p);
    while ((c = open_call(p)))
        call_refuse(c, -ECONNRESET);
    box_drop_phone(b, p);
    connection_remove(p);
    waitq_wake_all(&p->waiters);
    waitq_wake_all(&p->pollers);
    waitq_wake_all(&b->senders);
}

// The oldest answer, or NULL; the caller takes over the reference.
static struct call *take_answer(struct phone *p, bool *was_full)
{
    struct call *c = NULL;
    spin_lock(&p->lock);
    assert_checked(p->answer_count <= p->async &&
                   p->async <= p->unfetched_calls);
    *was_full = p->unfetched_calls == IPC_PHONE_CALLS;
    if (!list_empty(&p->answers)) {
        c = list_first(&p->answers, struct call, phone_node);
        list_remove(&c->phone_node);
        WRITE_ONCE(p->answer_count, p->answer_count - 1);
        WRITE_ONCE(p->unfetched_calls, p->unfetched_calls - 1);
        WRITE_ONCE(p->async, p->async - 1);
    }
    spin_unlock(&p->lock);
    return c;
}

void phone_release(struct phone *p)
{
    struct call *c;
    bool was_full;
    phone_hang_up(p);
    while ((c = take_answer(p, &was_full)))
        call_unref(c);
    phone_unref(p);
}

bool phone_dead(struct phone *p)
{
    return READ_ONCE(p->hung_up) || READ_ONCE(p->box->closed);
}

// --- sending ----------------------------------------------------------------

bool phone_may_send(struct phone *p)
{
    return phone_dead(p) || (READ_ONCE(p->unfetched_calls) < IPC_PHONE_CALLS &&
                             READ_ONCE(p->box->count) < IPC_BOX_CALLS);
}

static int enter_phone(struct phone *p, struct call *c, u32 *id)
{
    int err = 0;
    spin_lock(&p->lock);
    assert_checked(p->unfetched_calls <= IPC_PHONE_CALLS &&
                   p->async <= p->unfetched_calls);
    if (phone_dead(p)) {
        err = -ECONNRESET; // also when it is full: it will not drain
    } else if (p->unfetched_calls == IPC_PHONE_CALLS) {
        err = -EAGAIN;
    } else {
        c->state = CALL_UNDER_WAY;
        c->id = *id = ++p->last_id;
        WRITE_ONCE(p->unfetched_calls, p->unfetched_calls + 1);
        if (!c->waiter)
            WRITE_ONCE(p->async, p->async + 1);
        list_push_back(&p->calls, &c->phone_node);
    }
    spin_unlock(&p->lock);
    return err;
}

// Undoes enter_phone for a call that could not be sent. A concurrent hang-up
// may have answered it already or be about to: marking it answered prevents the
// latter.
static void leave_phone(struct phone *p, struct call *c)
{
    spin_lock(&p->lock);
    assert_checked(c->phone == p && p->unfetched_calls <= IPC_PHONE_CALLS);
    bool answered = c->state == CALL_ANSWERED;
    list_remove(&c->phone_node);
    if (answered && !c->waiter)
        WRITE_ONCE(p->answer_count, p->answer_count - 1);
    if (!answered || !c->waiter)
        WRITE_ONCE(p->unfetched_calls, p->unfetched_calls - 1);
    if (!c->waiter)
        WRITE_ONCE(p->async, p->async - 1);
    c->state = CALL_ANSWERED;
    spin_unlock(&p->lock);
}

static int try_send(struct phone *p, struct call *c, u32 *id)
{
    int err = enter_phone(p, c, id);
    if (err)
        return err;
    if (p->box->server) {
        p->box->server->called(p, c);
        return 0;
    }
    err = box_push(p->box, c);
    if (err)
        leave_phone(p, c);
    return err;
}

// *id is stored before the call can be answered: after that it may be freed.
static int send(struct phone *p, struct call *c, bool block, u32 *id)
{
    int err;
    while ((err = try_send(p, c, id)) == -EAGAIN && block) {
        if (wait_event(&p->box->senders, phone_may_send(p), WAIT_INTERRUPTIBLE,
                       WAIT_FOREVER))
            return -ERESTARTSYS;
    }
    return err;
}

// --- answers ----------------------------------------------------------------

// Whether call `c` has its answer, or (NULL) any call that ipc_wait may return.
static bool has_answer(struct phone *p, struct call *c)
{
    return c ? READ_ONCE(c->state) == CALL_ANSWERED
             : READ_ONCE(p->answer_count) || !READ_ONCE(p->async);
}

// Sleeps until there is an answer, or no call is left that could get one.
static int sleep(struct phone *p, u64 deadline)
{
    assert_may_sleep();
    if (has_answer(p, NULL))
        return 0;
    return wait_event(&p->waiters, has_answer(p, NULL), WAIT_INTERRUPTIBLE,
                      deadline);
}

// Sleeps for one answer. The answering side knows the thread: no queue is
// needed.
static int sleep_for(struct call *c)
{
    assert_may_sleep();
    int err = 0;
    WRITE_ONCE(current->wait_on, "ipc answer");
    for (;;) {
        wait_prepare(WAIT_INTERRUPTIBLE);
        bool answered = has_answer(c->phone, c);
        if (answered || err) {
            wait_finish();
            return answered ? 0 : err;
        }
        err = wait_sleep(WAIT_INTERRUPTIBLE, WAIT_FOREVER);
    }
}

// The same for a kernel box, which may have to be polled.
static int sleep_served(struct phone *p, struct call *c, u64 deadline)
{
    assert_may_sleep();
    assert_checked(p->box->server);
    const struct box_server *s = p->box->server;
    while (!has_answer(p, c)) {
        if (s->answer_ready(p)) {
            s->send_answer(p);
            continue;
        }
        int err =
            wait_event(&p->pollers, has_answer(p, c) || s->answer_ready(p),
                       WAIT_INTERRUPTIBLE, MIN(deadline, s->deadline(p)));
        if (err == -EINTR)
            return err;
        if (err && clock_now_ns() >= deadline)
            return -ETIMEDOUT;
    }
    return 0;
}

// Consumes the phone's reference.
static void fetched(struct call *c, struct ipc_call *out)
{
    assert_checked(c->state == CALL_ANSWERED);
    out->id = c->id;
    out->method = c->method;
    copy_words(out->arg, c->answer);
    out->retval = c->retval;
    out->flags = out->task = out->phone = 0;
    if (c->connect && c->retval >= 0)
        transfer_fetched(c, out);
    ipc_count(&current_task()->ipc_counters.answer_received);
    call_unref(c);
}

int phone_wait(struct phone *p, struct ipc_call *out, u64 deadline)
{
    assert_may_sleep();
    for (;;) {
        int err = p->box->server ? sleep_served(p, NULL, deadline)
                                 : sleep(p, deadline);
        bool was_full;
        struct call *c = take_answer(p, &was_full);
        if (!c && err)
            return err == -EINTR ? -ERESTARTNOHAND : err;
        if (!c && !READ_ONCE(p->async))
            return -ENOENT;
        if (!c)
            continue; // another thread took it
        if (was_full)
            waitq_wake_all(&p->box->senders);
        if (!READ_ONCE(p->async)) // the last one: the other waiters get none
            waitq_wake_all(&p->waiters);
        fetched(c, out);
        return 0;
    }
}

bool phone_ready(struct phone *p)
{
    const struct box_server *s = p->box->server;
    return READ_ONCE(p->answer_count) || (s && s->answer_ready(p));
}

// The wait was interrupted: a call without an answer becomes one for ipc_wait.
static bool becomes_async(struct phone *p, struct call *c)
{
    spin_lock(&p->lock);
    assert_checked(c->waiter == current || c->state == CALL_ANSWERED);
    bool open = c->state == CALL_UNDER_WAY;
    if (open) {
        c->waiter = NULL;
        WRITE_ONCE(p->async, p->async + 1);
    }
    spin_unlock(&p->lock);
    return open;
}

static int call_and_wait(struct phone *p, struct call *c, struct ipc_call *m)
{
    int err = p->box->server ? sleep_served(p, c, WAIT_FOREVER) : sleep_for(c);
    if (err && becomes_async(p, c))
        return -EINTR;
    fetched(c, m);
    return 0;
}

int phone_call(struct phone *p, struct ipc_call *m)
{
    assert_may_sleep();
    if (m->flags & ~(IPC_F_WAIT | IPC_F_BLOCK))
        return -EINVAL;
    struct call *c = call_new(p, m);
    if (!c)
        return -ENOMEM;
    if (m->flags & IPC_F_WAIT)
        c->waiter = current;
    TRACE(ipc_call, .flow = (u32)c, .method = m->method,
          .callee = p->box->task->id);
    int err = transfer_prepare(c);
    if (!err)
        err = send(p, c, m->flags & IPC_F_BLOCK, &m->id);
    if (err) {
        TRACE(ipc_answer, .flow = (u32)c, .result = (u32)err);
        call_unref(c); // the box's reference
        call_unref(c); // the phone's
        return err;
    }
    ipc_count(&current_task()->ipc_counters.call_sent);
    return m->flags & IPC_F_WAIT ? call_and_wait(p, c, m) : 0;
}
