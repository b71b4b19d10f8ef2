// Answerboxes, phones and calls: the parts of the kernel's IPC.
//
// A call belongs to two sides, each of which has a reference to it: the phone
// that sent it (until the answer is fetched) and the box that holds it (until
// it is answered). The sides never wait for each other: a phone that is hung up
// answers its calls itself, and a later answer from the box is dropped.
//
// Locks: box->lock guards a box and the membership of calls in it; phone->lock
// guards a phone and the state of its calls. Neither is taken while the other,
// or another of its kind, is held. User memory is accessed under neither.
#pragma once

#include "kernel/sync/waitq.h"
#include "kernel/task/ipc_counts.h"
#include <strobe/ipc.h>

struct answerbox;
struct aspace;
struct file;
struct payer;
struct phone;
struct receiver;
struct task;
struct thread;

enum call_state { CALL_UNDER_WAY, CALL_ANSWERED };

struct call {
    u32 refs;               // atomic
    struct phone *phone;    // the sender; referenced
    struct list phone_node; // phone->calls, then ->answers: phone->lock
    enum call_state state;  // phone->lock; only the first answer counts
    struct thread *waiter;  // phone->lock: sleeps for this answer, or NULL
    struct list box_node;   // box->queued, then ->received: box->lock
    u32 box_id;             // the call's id in this box; box->lock
    u32 id, method, arg[6], task; // as sent: struct ipc_call
    s32 retval;                   // the answer: phone->lock
    u32 answer[6];
    // IPC_M_DATA_*: the caller's memory, referenced; phone->lock.
    struct aspace *aspace;
    // A box to connect to, referenced: the caller's for IPC_M_CONNECT_TO_ME,
    // the one that it was answered with for IPC_M_CONNECT_ME_TO.
    struct answerbox *connect;
};

struct phone {
    u32 refs;  // the descriptor's, its calls', its hang-up's; atomic
    u32 id;    // as servers see it
    u32 owner; // task that connected it
    struct answerbox *box;   // referenced
    struct list all_node;    // all phones (connections.c)
    struct list box_node;    // box->phones: box->lock
    struct list hangup_node; // box->hangups: box->lock
    bool known; // the box's task has received a call from it: box->lock
    struct spinlock lock;
    bool hung_up;
    u32 unfetched_calls; // calls whose answer has not been fetched
    u32 async;           // of those, the ones that ipc_wait returns
    u32 answer_count;
    u32 last_id;
    struct list calls, answers;    // under way; answered
    struct waitq waiters, pollers; // of ipc_wait (one is woken), of poll
    void *server_data;             // private to a kernel box
    struct payer *payer; // pays for the phone and all calls it may have
};

// Operations of a box that the kernel serves itself. Called without locks, may
// sleep, except for `answer_ready` and `deadline`.
struct box_server {
    int (*connected)(struct phone *p); // 0 or -errno
    // In the sender's context; answers the call now or later, by call_answer.
    void (*called)(struct phone *p, struct call *c);
    // A thread waits for answers on this phone. answer_ready: can one be given
    // now? deadline: the latest time from which one can. send_answer: gives it.
    bool (*answer_ready)(struct phone *p);
    u64 (*deadline)(struct phone *p);
    void (*send_answer)(struct phone *p);
    void (*hung_up)(struct phone *p); // ends everything, answers open calls
    void (*freed)(struct phone *p);
};

struct answerbox {
    u32 refs; // phones, descriptors, the task, calls that connect; atomic
    struct task *task;               // the owner; referenced
    const struct box_server *server; // NULL: the task serves it
    struct spinlock lock;
    bool closed;
    u32 descriptors;
    u32 count;   // calls queued and received
    u32 waiting; // calls and hang-ups for ipc_wait
    u32 last_id;
    struct list queued, received;
    struct list hangups; // phones
    struct list phones;
    struct list watches;       // interrupts; see irq_notify.c for the lock
    bool notified;             // an interrupt may be pending in a watch
    struct receiver *receiver; // atomic: a thread in ipc_wait, or NULL;
    struct waitq waiters;      // further threads in ipc_wait
    struct waitq pollers, senders;
};

// --- calls (call.c)

// A call from the current task, with one reference for the phone and one for
// the box. NULL: no memory.
struct call *call_new(struct phone *p, const struct ipc_call *message);
// Describes the call to its receiver, with the receiver's `id` for it.
void call_describe(const struct call *c, u32 id, struct ipc_call *out);
void call_ref(struct call *c);
void call_unref(struct call *c);
// Gives the caller its answer (retval, arg), if it does not have one yet;
// consumes the box's reference. May sleep.
void call_answer(struct call *c, const struct ipc_call *answer);
void call_refuse(struct call *c, int error); // with -errno
// The caller's memory, if the caller still waits for an answer; takes over the
// reference.
struct aspace *call_take_aspace(struct call *c);

static inline void copy_words(u32 to[6], const u32 from[6])
{
    to[0] = from[0]; // half the cost of a loop or `rep movs`
    to[1] = from[1];
    to[2] = from[2];
    to[3] = from[3];
    to[4] = from[4];
    to[5] = from[5];
}

// --- phones (phone.c)

// -ECONNRESET: the box is closed; -ENOMEM; -ENFILE: the user's limit is
// reached; or the server's error.
int phone_create(struct answerbox *b, struct phone **out);
void phone_ref(struct phone *p);
void phone_unref(struct phone *p);
// Ends the connection in both directions. Idempotent.
void phone_hang_up(struct phone *p);
// The last possible user is gone: hangs up, drops the reference.
void phone_release(struct phone *p);
// As the system calls; `m` is kernel memory.
int phone_call(struct phone *p, struct ipc_call *m);
int phone_wait(struct phone *p, struct ipc_call *out, u64 deadline);
bool phone_ready(struct phone *p); // phone_wait would return at once
bool phone_dead(struct phone *p);
bool phone_may_send(struct phone *p);

// --- boxes (answerbox.c)

struct answerbox *box_create(struct task *t, const struct box_server *server);
void box_ref(struct answerbox *b);
void box_unref(struct answerbox *b);
// Hangs up all phones. Idempotent.
void box_close(struct answerbox *b);
// A call arrives. 0, -EAGAIN, -ECONNRESET; after 0 the caller must not use `c`.
int box_push(struct answerbox *b, struct call *c);
// A phone connects. False: the box is closed.
bool box_add_phone(struct answerbox *b, struct phone *p);
// A phone hangs up: drops its calls, notifies the task.
void box_drop_phone(struct answerbox *b, struct phone *p);
// As the system calls.
int box_wait(struct answerbox *b, struct ipc_call *out, u64 deadline);
int box_answer(struct answerbox *b, const struct ipc_call *answer);
int box_forward(struct answerbox *b, u32 id, struct phone *to,
                const struct ipc_call *changed);
// A received call could not be copied to the receiver: it is queued again.
void box_put_back(struct answerbox *b, u32 id);
bool box_ready(struct answerbox *b);
// One more item can be fetched: wakes one thread in ipc_wait, and all pollers.
// Any context but NMI.
void box_wake(struct answerbox *b);

// --- the boxes of tasks (task_box.c)

enum task_box { TASK_BOX, KERNEL_BOX };
// The task's box, created at first use; referenced. NULL: the task has ended,
// or there is no memory.
struct answerbox *task_box(struct task *t, enum task_box which);
// The task's box is closed; a new one may be created for it.
void task_box_closed(struct answerbox *b);
// -EBUSY: a naming service is already running.
int naming_set(struct answerbox *b);
struct answerbox *naming_box(void); // referenced, or NULL

UPCALL extern const struct box_server kernel_box; // kbox.c

// --- the messages that the kernel understands (transfer.c)

// Checks a call of the current task and attaches what it carries. 0, -EINVAL,
// -ENOMEM.
int transfer_prepare(struct call *c);
// Before the answer is given: performs what `answer` grants, and changes it to
// what the caller will see. Returns the result of ipc_answer.
int transfer_answer(struct call *c, struct ipc_call *answer);
// The answer is fetched: installs what it carries in the current task.
void transfer_fetched(struct call *c, struct ipc_call *answer);
// A new phone to `b` as a descriptor of the current task, or -errno.
int phone_install(struct answerbox *b);
// The phone behind a descriptor, the file referenced; -EBADF, -EINVAL.
int phone_from_fd(u32 fd, struct file **file, struct phone **out);
// The phone of a file; NULL: the file is no phone.
struct phone *phone_of(const struct file *f);

// --- interrupts (irq_notify.c)

int irq_notify(struct answerbox *b, u32 irq, bool on);
void irq_notify_none(struct answerbox *b);
bool irq_fetch(struct answerbox *b, struct ipc_call *out);

// --- connections (connections.c)

void connection_add(struct phone *p);
void connection_remove(struct phone *p);
// Of a snapshot: fn is called without locks, with the ids of the connecting
// task and of the called one.
void ipc_for_each_connection(void (*fn)(u32 caller, u32 callee, void *arg),
                             void *arg);
