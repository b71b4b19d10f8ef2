// Answerboxes, phones and calls, from inside: counters, the end of either side,
// and that no object leaks.
#include "arch/irq.h"
#include "kernel/base/errno.h"
#include "kernel/ipc/ipc.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"
#include "lib/string.h"
#include "tests/kernel/test.h"

#define METHOD IPC_M_USER
#define INTERRUPTS 5u
#define SOON (clock_now_ns() + TEST_PATIENCE)

struct ends {
    struct answerbox *box;
    struct phone *phone;
};

static void add_used(const struct slab_cache *c, void *arg)
{
    static const char *const ours[] = { "struct call", "struct phone",
                                        "struct answerbox", "struct watch" };
    for (u32 i = 0; i < ARRAY_SIZE(ours); i++) {
        if (!strcmp(c->name, ours[i]))
            *(u32 *)arg += c->used;
    }
}

static u32 objects(void)
{
    u32 n = 0;
    slab_for_each(add_used, &n);
    return n;
}

static struct ends connect(void)
{
    struct ends e = { box_create(&kernel_task, NULL), NULL };
    if (!e.box || phone_create(e.box, &e.phone))
        panic("test: no memory for a phone");
    return e;
}

static void disconnect(struct ends *e)
{
    if (e->phone)
        phone_release(e->phone);
    box_close(e->box);
    box_unref(e->box);
}

static int send(struct phone *p, u32 word)
{
    struct ipc_call m = { .method = METHOD, .arg = { word } };
    return phone_call(p, &m);
}

static int answer(struct answerbox *b, u32 id, s32 retval)
{
    struct ipc_call m = { .id = id, .retval = retval, .arg = { 1, 2, 3 } };
    return box_answer(b, &m);
}

static void sleep_ms(u32 ms)
{
    thread_sleep_until(clock_now_ns() + ms * NSEC_PER_MSEC,
                       WAIT_UNINTERRUPTIBLE);
}

KERNEL_TEST(ipc_round_trip)
{
    u32 before = objects();
    struct ends e = connect();
    struct ipc_call m = { .method = METHOD, .arg = { 1, 2, 3, 4, 5, 6 } }, got;
    expect(!box_ready(e.box) && !phone_ready(e.phone));
    expect(phone_wait(e.phone, &got, 0) == -ENOENT);
    expect(phone_call(e.phone, &m) == 0 && box_ready(e.box));
    expect(phone_wait(e.phone, &got, 0) == -ETIMEDOUT);
    expect(box_wait(e.box, &got, SOON) == 0);
    expect(got.method == METHOD && got.arg[0] == 1 && got.arg[5] == 6);
    expect(got.phone == e.phone->id && got.task == current_task()->id);
    expect(answer(e.box, got.id + 1, 0) == -ENOENT);
    expect(answer(e.box, got.id, 77) == 0);
    expect(answer(e.box, got.id, 78) == -ENOENT);
    expect(phone_ready(e.phone) && phone_wait(e.phone, &got, SOON) == 0);
    expect(got.id == m.id && got.retval == 77 && got.arg[2] == 3);
    disconnect(&e);
    expect(objects() == before);
}

KERNEL_TEST(ipc_limits)
{
    u32 before = objects();
    struct ends e = connect();
    struct ipc_call got;
    for (u32 i = 0; i < IPC_PHONE_CALLS; i++)
        expect(send(e.phone, i) == 0);
    expect(!phone_may_send(e.phone) && send(e.phone, 0) == -EAGAIN);
    for (u32 i = 0; i < IPC_PHONE_CALLS; i++) {
        expect(box_wait(e.box, &got, SOON) == 0 && got.arg[0] == i);
        expect(answer(e.box, got.id, 0) == 0);
    }
    expect(send(e.phone, 0) == -EAGAIN); // until answers are read
    expect(phone_wait(e.phone, &got, SOON) == 0);
    expect(phone_may_send(e.phone) && send(e.phone, 0) == 0);
    disconnect(&e);
    expect(objects() == before);
}

// A phone hangs up with calls queued, received and answered.
KERNEL_TEST(ipc_phone_hangs_up)
{
    u32 before = objects();
    struct ends e = connect();
    struct ipc_call first, second, got;
    for (u32 i = 0; i < 5; i++)
        expect(send(e.phone, i) == 0);
    expect(box_wait(e.box, &first, SOON) == 0);
    expect(box_wait(e.box, &second, SOON) == 0);
    expect(answer(e.box, first.id, 0) == 0);
    phone_hang_up(e.phone);
    expect(send(e.phone, 9) == -ECONNRESET);
    expect(e.box->count == 1); // only the received call
    u32 reset = 0;
    while (phone_wait(e.phone, &got, 0) == 0)
        reset += got.retval == -ECONNRESET;
    expect(reset == 4);
    u32 id = e.phone->id;
    phone_release(e.phone);
    e.phone = NULL;
    expect(box_wait(e.box, &got, SOON) == 0);
    expect(got.method == IPC_M_PHONE_HANGUP && got.phone == id && !got.id);
    expect(box_wait(e.box, &got, 0) == -ETIMEDOUT);
    expect(answer(e.box, second.id, 0) == 0); // discarded
    disconnect(&e);
    expect(objects() == before);
}

KERNEL_TEST(ipc_box_closes)
{
    u32 before = objects();
    struct ends e = connect();
    struct ipc_call got;
    for (u32 i = 0; i < 4; i++)
        expect(send(e.phone, i) == 0);
    expect(box_wait(e.box, &got, SOON) == 0);
    box_close(e.box);
    expect(phone_dead(e.phone) && send(e.phone, 0) == -ECONNRESET);
    for (u32 i = 0; i < 4; i++)
        expect(phone_wait(e.phone, &got, 0) == 0 && got.retval == -ECONNRESET);
    expect(answer(e.box, got.id, 0) == -ENOENT);
    expect(box_wait(e.box, &got, SOON) == -ECONNRESET);
    struct phone *late;
    expect(phone_create(e.box, &late) == -ECONNRESET);
    disconnect(&e);
    expect(objects() == before);
}

KERNEL_TEST(ipc_forward)
{
    u32 before = objects();
    struct ends a = connect(), b = connect();
    struct ipc_call got, changed = { .method = METHOD + 1, .arg = { 8 } };
    expect(send(a.phone, 5) == 0 && box_wait(a.box, &got, SOON) == 0);
    expect(box_forward(a.box, got.id, b.phone, &changed) == 0);
    expect(a.box->count == 0 && b.box->count == 1);
    expect(box_wait(b.box, &got, SOON) == 0);
    expect(got.method == METHOD + 1 && got.arg[0] == 8);
    expect(got.phone == a.phone->id);
    expect(answer(b.box, got.id, 6) == 0);
    expect(phone_wait(a.phone, &got, SOON) == 0 && got.retval == 6);
    // A call stays with its receiver if it cannot be forwarded, as the other
    // box is full and then closed.
    for (u32 i = 0; i < IPC_BOX_CALLS; i++) {
        if (send(b.phone, i) == -EAGAIN) {
            phone_release(b.phone);
            if (phone_create(b.box, &b.phone))
                panic("test: no memory for a phone");
        }
    }
    expect(send(a.phone, 5) == 0 && box_wait(a.box, &got, SOON) == 0);
    box_close(b.box);
    expect(box_forward(a.box, got.id, b.phone, &changed) == -ECONNRESET);
    expect(answer(a.box, got.id, 9) == 0);
    expect(phone_wait(a.phone, &got, SOON) == 0 && got.retval == 9);
    disconnect(&a);
    disconnect(&b);
    expect(objects() == before);
}

// Sleeps several times, which raises timer interrupts (fewer if the host delays
// the virtual machine past a deadline), and receives their notification.
static void be_notified(struct answerbox *b, struct ipc_call *got)
{
    for (u32 i = 0; i < INTERRUPTS; i++)
        sleep_ms(2);
    expect(box_wait(b, got, SOON) == 0 && got->method == IPC_M_IRQ);
}

// One notification for any number of interrupts, with their count.
KERNEL_TEST(ipc_interrupts)
{
    u32 before = objects();
    struct answerbox *b = box_create(&kernel_task, NULL);
    struct ipc_call got;
    u32 vector = clock_event_vector();
    if (!b)
        panic("test: no memory for a box");
    expect(irq_notify(b, 31, true) == -EINVAL);
    expect(irq_notify(b, 0x100, true) == -EINVAL);
    expect(irq_notify(b, vector, true) == 0);
    expect(irq_notify(b, vector, true) == -EBUSY);
    be_notified(b, &got);
    for (u32 i = 0; i < 100 && got.arg[2] < INTERRUPTS; i++)
        be_notified(b, &got);
    expect(got.arg[1] == vector && got.arg[2] >= INTERRUPTS);
    expect(got.arg[3] < cpu_count && !got.id);
    expect(irq_notify(b, vector, false) == 0);
    sleep_ms(5);
    while (box_wait(b, &got, 0) == 0) // sent before the stop
        expect(got.method == IPC_M_IRQ);
    expect(irq_notify(b, vector, true) == 0); // closing the box unsubscribes
    box_close(b);
    box_unref(b);
    expect(objects() == before);
}

// 64-bit counters in two words, where the top bit of either word changes.
KERNEL_TEST(ipc_counters)
{
    struct ipc_counter c = { .low = 0x7fffffff };
    expect(ipc_counter_read(&c) == 0x7fffffff);
    ipc_count(&c);
    expect(ipc_counter_read(&c) == 0x80000000 && c.flips == 1);
    c.flips = 0; // as another CPU may read it between the two writes
    expect(ipc_counter_read(&c) == 0x80000000);
    c = (struct ipc_counter){ .low = 0xffffffff, .flips = 1 };
    expect(ipc_counter_read(&c) == 0xffffffff);
    ipc_count(&c);
    expect(ipc_counter_read(&c) == 0x100000000 && c.flips == 2);
    c.flips = 1;
    expect(ipc_counter_read(&c) == 0x100000000);
}

// --- answers, hang-ups and receivers at the same time -----------------------

#define SERVERS 3
#define RACES 300

struct race {
    struct answerbox *box;
    u32 serving; // atomic
};

static void serve(void *arg)
{
    struct race *r = arg;
    struct ipc_call got;
    while (box_wait(r->box, &got, WAIT_FOREVER) == 0) {
        if (!got.id)
            continue;
        s32 err = answer(r->box, got.id, (s32)got.arg[0]);
        // If the box was closed before the answer, the kernel has already
        // refused the call.
        expect(err == 0 || (err == -ENOENT && READ_ONCE(r->box->closed)));
    }
    __atomic_fetch_sub(&r->serving, 1, __ATOMIC_RELEASE);
}

static void one_race(struct race *r, u32 i)
{
    struct phone *p;
    struct ipc_call got;
    u32 calls = 1 + test_random() % 8;
    if (phone_create(r->box, &p))
        panic("test: no memory for a phone");
    for (u32 n = 0; n < calls; n++)
        expect(send(p, i + n) == 0);
    u32 fetch = test_random() % (calls + 1);
    for (u32 n = 0; n < fetch; n++)
        expect(phone_wait(p, &got, SOON) == 0 && got.retval >= (s32)i);
    phone_release(p);
}

KERNEL_TEST(ipc_races)
{
    u32 before = objects();
    struct race r = { box_create(&kernel_task, NULL), SERVERS };
    if (!r.box)
        panic("test: no memory for a box");
    for (u32 i = 0; i < SERVERS; i++) {
        if (kthread_create("ipc server", serve, &r, NULL))
            panic("test: no memory for a thread");
    }
    for (u32 i = 0; i < RACES; i++)
        one_race(&r, i);
    box_close(r.box);
    while (__atomic_load_n(&r.serving, __ATOMIC_ACQUIRE))
        sleep_ms(1);
    expect(r.box->count == 0 && r.box->refs == 1);
    box_unref(r.box);
    expect(objects() == before);
}
