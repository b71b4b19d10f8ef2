// Answerboxes: calls arrive here, wait, and stay until they are answered.
//
// box->lock guards the lists and counts. Sleepers and poll() read the counts
// without it: each is one aligned word, and a thread that changes one wakes the
// queue afterwards. Each call wakes one of the threads in ipc_wait, and all
// pollers.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/ipc/ipc.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"
#include "kernel/trace/point.h"

SLAB_CACHE_COUNTED(box_cache, struct answerbox, refs);

struct answerbox *box_create(struct task *t, const struct box_server *server)
{
    assert(t);
    struct answerbox *b = slab_alloc(&box_cache);
    if (!b)
        return NULL;
    *b = (struct answerbox){ .refs = 1, .task = t, .server = server };
    task_ref(t);
    spin_init(&b->lock, "answerbox");
    list_init(&b->queued);
    list_init(&b->received);
    list_init(&b->hangups);
    list_init(&b->phones);
    list_init(&b->watches);
    waitq_init(&b->waiters, "ipc call");
    waitq_init(&b->pollers, "ipc call");
    waitq_init(&b->senders, "ipc room");
    return b;
}

void box_ref(struct answerbox *b)
{
    u32 old = __atomic_fetch_add(&b->refs, 1, __ATOMIC_RELAXED);
    assert(old); // there must be a reference already
}

void box_unref(struct answerbox *b)
{
    u32 left = __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL);
    assert(left != ~0u);
    if (left)
        return;
    assert(list_empty(&b->phones) && list_empty(&b->watches) && !b->count);
    task_unref(b->task);
    slab_free(&box_cache, b);
}

bool box_ready(struct answerbox *b)
{
    return READ_ONCE(b->waiting) || READ_ONCE(b->notified);
}

// --- waiting ----------------------------------------------------------------

// Most servers have one thread, which waits without the queue: it stores a
// pointer to its struct receiver in box->receiver; a waker takes the pointer
// out and wakes it. Further threads use the queue. No wake-up is lost: the
// waker makes the event visible, then takes the pointer; the receiver stores
// the pointer, is marked sleeping, then checks for events.
struct receiver {
    struct thread *thread;
    bool woken; // the waker took the pointer and is done with *this
};

static bool wake_receiver(struct answerbox *b)
{
    struct thread *t = NULL;
    preempt_disable(); // the receiver may be spinning on `woken`
    struct receiver *r =
        __atomic_exchange_n(&b->receiver, NULL, __ATOMIC_SEQ_CST);
    if (r) {
        t = r->thread;
        thread_ref(t);
        __atomic_store_n(&r->woken, true, __ATOMIC_RELEASE);
    }
    preempt_enable();
    if (!t)
        return false;
    thread_wake(t);
    thread_unref(t);
    return true;
}

void box_wake(struct answerbox *b)
{
    if (!wake_receiver(b))
        waitq_wake_one(&b->waiters);
    waitq_wake_all(&b->pollers);
}

static bool has_work(struct answerbox *b)
{
    return box_ready(b) || READ_ONCE(b->closed);
}

// Stores the pointer if no other thread's is there.
static bool enter(struct answerbox *b, struct receiver *r)
{
    assert_checked(r->thread == current && !r->woken);
    struct receiver *expected = NULL;
    return __atomic_compare_exchange_n(&b->receiver, &expected, r, false,
                                       __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void leave(struct answerbox *b, struct receiver *r)
{
    struct receiver *own = r;
    if (__atomic_compare_exchange_n(&b->receiver, &own, NULL, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return;
    while (!__atomic_load_n(&r->woken, __ATOMIC_ACQUIRE))
        cpu_relax();
}

// 0 when the caller should check again; -ETIMEDOUT, -EINTR.
static int wait_for_call(struct answerbox *b, u64 deadline)
{
    assert_may_sleep();
    struct receiver r = { .thread = current };
    int err = 0;
    if (!enter(b, &r))
        return wait_event(&b->waiters, has_work(b), WAIT_INTERRUPTIBLE,
                          deadline);
    WRITE_ONCE(current->wait_on, "ipc call");
    for (;;) {
        wait_prepare(WAIT_INTERRUPTIBLE);
        if (err || has_work(b) || READ_ONCE(r.woken))
            break;
        err = wait_sleep(WAIT_INTERRUPTIBLE, deadline);
    }
    wait_finish();
    leave(b, &r);
    return has_work(b) ? 0 : err; // do not lose a wake-up on an error
}

// --- arriving ---------------------------------------------------------------

int box_push(struct answerbox *b, struct call *c)
{
    assert(c);
    assert_checked(c->phone && list_empty(&c->box_node));
    int err = 0;
    spin_lock(&b->lock);
    if (b->closed) {
        err = -ECONNRESET;
    } else if (b->count == IPC_BOX_CALLS) {
        err = -EAGAIN;
    } else {
        list_push_back(&b->queued, &c->box_node);
        WRITE_ONCE(b->count, b->count + 1);
        WRITE_ONCE(b->waiting, b->waiting + 1);
    }
    spin_unlock(&b->lock);
    if (!err)
        box_wake(b);
    return err;
}

// Removes a call from the box; box->lock is held.
static void take_out(struct answerbox *b, struct call *c, bool queued)
{
    spin_assert_held(&b->lock);
    assert_checked(b->count && (!queued || b->waiting));
    list_remove(&c->box_node);
    WRITE_ONCE(b->count, b->count - 1);
    if (queued)
        WRITE_ONCE(b->waiting, b->waiting - 1);
}

// Wakes senders after calls were removed from a box that held `before` calls.
static void wake_senders(struct answerbox *b, u32 before)
{
    if (before == IPC_BOX_CALLS)
        waitq_wake_all(&b->senders);
}

// --- receiving --------------------------------------------------------------

static struct phone *take_hangup(struct answerbox *b)
{
    spin_assert_held(&b->lock);
    assert_checked(!list_empty(&b->hangups) && b->waiting);
    struct phone *p = list_first(&b->hangups, struct phone, hangup_node);
    list_remove(&p->hangup_node);
    WRITE_ONCE(b->waiting, b->waiting - 1);
    return p;
}

static void describe_hangup(struct phone *p, struct ipc_call *out)
{
    assert_checked(READ_ONCE(p->hung_up));
    *out = (struct ipc_call){ .method = IPC_M_PHONE_HANGUP,
                              .task = p->owner,
                              .phone = p->id };
    phone_unref(p);
}

static u32 next_id(struct answerbox *b)
{
    spin_assert_held(&b->lock);
    b->last_id++;
    return b->last_id += !b->last_id; // 0 means none
}

// Moves the oldest queued call to the received ones and describes it in *out. A
// call that was answered already by its phone's hang-up is moved to `dead`
// instead.
static bool receive_call(struct answerbox *b, struct ipc_call *out,
                         struct list *dead)
{
    spin_assert_held(&b->lock);
    assert_checked(!list_empty(&b->queued) && b->waiting);
    struct call *c = list_first(&b->queued, struct call, box_node);
    if (READ_ONCE(c->state) == CALL_ANSWERED) {
        take_out(b, c, true);
        list_push_back(dead, &c->box_node);
        return false;
    }
    list_remove(&c->box_node);
    WRITE_ONCE(b->waiting, b->waiting - 1);
    list_push_back(&b->received, &c->box_node);
    c->box_id = next_id(b);
    if (c->phone->box == b) // else it was forwarded
        c->phone->known = true;
    call_describe(c, c->box_id, out);
    TRACE(ipc_take, .flow = (u32)c, .sender = out->task);
    return true;
}

static void drop_all(struct list *calls)
{
    while (!list_empty(calls)) {
        struct call *c = list_first(calls, struct call, box_node);
        list_remove(&c->box_node);
        call_unref(c);
    }
}

static bool fetch(struct answerbox *b, struct ipc_call *out)
{
    struct list dead = LIST_INIT(dead);
    struct phone *gone = NULL;
    bool got = false;
    spin_lock(&b->lock);
    u32 before = b->count;
    if (!list_empty(&b->hangups))
        gone = take_hangup(b);
    while (!gone && !got && !list_empty(&b->queued))
        got = receive_call(b, out, &dead);
    spin_unlock(&b->lock);
    if (unlikely(!list_empty(&dead))) {
        wake_senders(b, before);
        drop_all(&dead);
    }
    if (gone)
        describe_hangup(gone, out);
    else if (got)
        ipc_count(&b->task->ipc_counters.call_received);
    return got || gone;
}

int box_wait(struct answerbox *b, struct ipc_call *out, u64 deadline)
{
    assert_may_sleep();
    assert_checked(b->task == current_task() && !b->server);
    for (;;) {
        if (READ_ONCE(b->waiting) && fetch(b, out))
            return 0;
        if (READ_ONCE(b->notified) && irq_fetch(b, out))
            return 0;
        if (READ_ONCE(b->closed))
            return -ECONNRESET;
        int err = wait_for_call(b, deadline);
        if (err)
            return err == -EINTR ? -ERESTARTNOHAND : err;
    }
}

// Removes a received call from the box; NULL: there is none with this id.
static struct call *take_received(struct answerbox *b, u32 id)
{
    assert_checked(b->task == current_task());
    struct call *c, *found = NULL;
    spin_lock(&b->lock);
    u32 before = b->count;
    list_for_each(c, &b->received, box_node) {
        if (c->box_id == id) {
            found = c;
            take_out(b, c, false);
            break;
        }
    }
    spin_unlock(&b->lock);
    if (found)
        wake_senders(b, before);
    return found;
}

// Puts a call back where it was, regardless of the limit. If the box was closed
// after the call was taken, the call is refused as all others were.
static void give_back(struct answerbox *b, struct call *c, bool queued)
{
    assert(c);
    assert_checked(list_empty(&c->box_node));
    spin_lock(&b->lock);
    bool closed = b->closed;
    if (!closed) {
        list_push_front(queued ? &b->queued : &b->received, &c->box_node);
        WRITE_ONCE(b->count, b->count + 1);
        if (queued)
            WRITE_ONCE(b->waiting, b->waiting + 1);
    }
    spin_unlock(&b->lock);
    if (closed)
        call_refuse(c, -ECONNRESET);
    else if (queued)
        box_wake(b);
}

void box_put_back(struct answerbox *b, u32 id)
{
    struct call *c = id ? take_received(b, id) : NULL;
    if (c)
        give_back(b, c, true);
}

// --- answering --------------------------------------------------------------

int box_answer(struct answerbox *b, const struct ipc_call *answer)
{
    assert_may_sleep();
    struct call *c = take_received(b, answer->id);
    if (!c)
        return -ENOENT;
    struct ipc_call changed;
    int result = 0;
    if (unlikely(c->method < IPC_M_USER)) {
        changed = *answer;
        result = transfer_answer(c, &changed);
        if (result == -EBADF) {
            give_back(b, c, false);
            return result;
        }
        answer = &changed;
    }
    ipc_count(&b->task->ipc_counters.answer_sent); // before the caller can see
                                                   // the answer
    call_answer(c, answer);
    return result;
}

int box_forward(struct answerbox *b, u32 id, struct phone *to,
                const struct ipc_call *changed)
{
    assert_may_sleep();
    if (to->box->server)
        return -EINVAL; // a kernel box takes no forwarded calls
    if (changed && changed->method < IPC_M_USER)
        return -EINVAL;
    struct call *c = take_received(b, id);
    if (!c)
        return -ENOENT;
    struct ipc_call before;
    call_describe(c, id, &before);
    int err = changed && before.method < IPC_M_USER ? -EINVAL : 0;
    if (!err && READ_ONCE(to->hung_up))
        err = -ECONNRESET;
    if (!err && changed) {
        c->method = changed->method;
        copy_words(c->arg, changed->arg);
    }
    TRACE_IF(ipc_forward, !err, .flow = (u32)c, .callee = to->box->task->id);
    if (!err)
        err = box_push(to->box, c);
    if (err) {
        TRACE(ipc_forward, .flow = (u32)c, .callee = b->task->id);
        c->method = before.method;
        copy_words(c->arg, before.arg);
        give_back(b, c, false);
        return err;
    }
    ipc_count(&b->task->ipc_counters.forwarded);
    return 0;
}

// --- phones connect and hang up ---------------------------------------------

bool box_add_phone(struct answerbox *b, struct phone *p)
{
    assert_checked(p->box == b && list_empty(&p->box_node));
    spin_lock(&b->lock);
    bool open = !b->closed;
    if (open)
        list_push_back(&b->phones, &p->box_node);
    spin_unlock(&b->lock);
    return open;
}

void box_drop_phone(struct answerbox *b, struct phone *p)
{
    assert_checked(p->box == b && p->hung_up);
    struct list dead = LIST_INIT(dead);
    struct call *c, *next;
    spin_lock(&b->lock);
    u32 before = b->count;
    list_remove(&p->box_node);
    list_for_each_safe(c, next, &b->queued, box_node) {
        if (c->phone != p)
            continue;
        take_out(b, c, true);
        list_push_back(&dead, &c->box_node);
    }
    // Report this only to a task that fetches its calls: for others the queue
    // of hang-ups could grow without bound.
    bool tell = p->known && !b->closed;
    if (tell) {
        phone_ref(p);
        list_push_back(&b->hangups, &p->hangup_node);
        WRITE_ONCE(b->waiting, b->waiting + 1);
    }
    spin_unlock(&b->lock);
    wake_senders(b, before);
    drop_all(&dead);
    if (tell)
        box_wake(b);
}

// --- closing ----------------------------------------------------------------

static void splice(struct list *from, struct list *to)
{
    while (!list_empty(from)) {
        struct list *n = from->next;
        list_remove(n);
        list_push_back(to, n);
    }
}

static void refuse_all(struct answerbox *b, struct list *calls)
{
    assert_may_sleep();
    while (!list_empty(calls)) {
        struct call *c = list_first(calls, struct call, box_node);
        list_remove(&c->box_node);
        ipc_count(&b->task->ipc_counters.answer_sent);
        call_refuse(c, -ECONNRESET);
    }
}

void box_close(struct answerbox *b)
{
    assert(!b->server); // a kernel box is freed with its phones
    struct list calls = LIST_INIT(calls), hangups = LIST_INIT(hangups);
    struct phone *p;
    spin_lock(&b->lock);
    bool again = b->closed;
    WRITE_ONCE(b->closed, true);
    splice(&b->received, &calls);
    splice(&b->queued, &calls);
    splice(&b->hangups, &hangups);
    WRITE_ONCE(b->count, 0);
    WRITE_ONCE(b->waiting, 0);
    list_for_each(p, &b->phones, box_node)
        waitq_wake_all(&p->pollers);
    spin_unlock(&b->lock);
    if (again)
        return;
    irq_notify_none(b);
    refuse_all(b, &calls);
    while (!list_empty(&hangups)) {
        p = list_first(&hangups, struct phone, hangup_node);
        list_remove(&p->hangup_node);
        phone_unref(p);
    }
    wake_receiver(b);
    waitq_wake_all(&b->waiters);
    waitq_wake_all(&b->pollers);
    waitq_wake_all(&b->senders);
    task_box_closed(b);
}
