// kernel/profile/kbox.c: messages to a kernel box, in any order, some answered
// later. Each call is answered once, a phone has one session at most, and both
// are freed when it hangs up.
#define sigset_t kernel_sigset_t // the C library has one, too
#include "kernel/profile/kbox.c"
#undef sigset_t

#include "host.h"

#include <string.h>

#include <strobe/calls.h>

#define CALLS_MAX 64u
#define USER_BYTES 4096u // the caller's memory, from address 0 on

static struct input in;
static u8 user_memory[USER_BYTES];
static struct call calls[CALLS_MAX];
static u32 call_count, sessions, answers;
static u64 now;
static bool readable, ended;
static struct waitq readers;

// --- what the box is built on ------------------------------------------------

void mutex_init(struct mutex *m, const char *name UNUSED)
{
    m->owner = NULL;
}

void mutex_lock(struct mutex *m)
{
    REQUIRE(!m->owner);
    m->owner = MUTEX_NEW;
}

void mutex_unlock(struct mutex *m)
{
    REQUIRE(m->owner);
    m->owner = NULL;
}

void spin_init(struct spinlock *l, const char *name UNUSED)
{
    l->locked = 0;
}

void spin_lock(struct spinlock *l)
{
    REQUIRE(!l->locked);
    l->locked = SPIN_LOCKED;
}

void spin_unlock(struct spinlock *l)
{
    REQUIRE(l->locked);
    l->locked = 0;
}

void waitq_wake_all(struct waitq *q UNUSED)
{
}

void *slab_alloc(struct slab_cache *c UNUSED)
{
    return malloc(sizeof(struct kbox));
}

void slab_free(struct slab_cache *c UNUSED, void *p)
{
    free(p);
}

void *kmalloc(size_t size)
{
    return malloc(size);
}

void kfree(void *p)
{
    free(p);
}

u64 clock_now_ns(void)
{
    return now;
}

int copy_from_user(void *dst, u32 src, size_t n)
{
    if (src >= USER_BYTES || n > USER_BYTES - src)
        return -EFAULT;
    memcpy(dst, user_memory + src, n);
    return 0;
}

int copy_to_user(u32 dst, const void *src, size_t n)
{
    if (dst >= USER_BYTES || n > USER_BYTES - dst)
        return -EFAULT;
    memcpy(user_memory + dst, src, n);
    return 0;
}

// --- sessions ----------------------------------------------------------------

// One permission check in eight fails.
static u32 questions;

static bool permitted(void)
{
    return questions % 8 != 0;
}

bool may_profile_everything(void)
{
    questions++;
    return permitted();
}

bool may_profile(const struct task *t UNUSED)
{
    return may_profile_everything();
}

static void end_stream(struct stream *s)
{
    REQUIRE(s && sessions-- == 1);
    free(s);
}

static const struct stream_kind kind = { .end = end_stream };

// With readers it is a sampling session, else a counting one.
static struct stream *begin_stream(struct waitq *of)
{
    REQUIRE(permitted() && !sessions++);
    struct stream *s = calloc(1, sizeof(*s));
    s->kind = &kind;
    s->readers = of;
    return s;
}

int session_begin(struct task *task UNUSED, const struct sprofile_options *o,
                  struct waitq *unused UNUSED, struct stream **out)
{
    if (o->size != sizeof(*o) || take_byte(&in) & 1)
        return -EINVAL;
    *out = begin_stream(&readers);
    return 0;
}

void stream_pause(struct stream *s, bool pause)
{
    REQUIRE(s->readers && (pause || !s->kind->once));
    s->paused = pause;
}

void session_info(struct stream *s, struct sprofile_info *out)
{
    REQUIRE(s->readers);
    memset(out, 0, sizeof(*out));
    out->taken = s->paused;
}

bool stream_readable(struct stream *s)
{
    return readable && !s->paused;
}

bool stream_ended(struct stream *s)
{
    return ended && !s->paused;
}

int stream_read(struct stream *s, u32 addr UNUSED, u32 size)
{
    return s->paused ? 0 : (int)(size & 0xfff);
}

int stream_map_ring(struct stream *s, u32 addr UNUSED, u32 size)
{
    return s->paused ? -EINVAL : (int)(size & 0xff);
}

int stream_map(struct stream *s)
{
    return (int)s->paused;
}

void stream_consume(struct stream *s)
{
    REQUIRE(s->readers);
}

static int trace_info(struct stream *s, u32 addr)
{
    REQUIRE(s->readers);
    return copy_to_user(addr, &s->paused, sizeof(s->paused));
}

static const struct stream_kind trace_kind = { .once = true,
                                               .end = end_stream,
                                               .info = trace_info };

int trace_session_begin(u32 options, struct waitq *unused UNUSED,
                        struct stream **out)
{
    if (options & 1)
        return -EBUSY;
    *out = begin_stream(&readers);
    (*out)->kind = &trace_kind;
    return 0;
}

int counts_begin(struct task *task UNUSED,
                 const struct sprofile_count_options *o, struct stream **out)
{
    if (o->size != sizeof(*o))
        return -EINVAL;
    *out = begin_stream(NULL);
    return 0;
}

void counts_read(struct stream *s, struct sprofile_counts *out)
{
    REQUIRE(!s->readers);
    memset(out, 0, sizeof(*out));
    out->tasks = 1;
}

// --- the trace of calls ------------------------------------------------------

static bool traces, trace_paused;

int call_trace_begin(u32 options)
{
    REQUIRE(permitted() && !sessions);
    if (options & 1)
        return -EBUSY;
    traces = true;
    sessions++;
    return 0;
}

void call_trace_end(void)
{
    REQUIRE(traces && sessions-- == 1);
    traces = trace_paused = false;
}

void call_trace_pause(bool pause)
{
    REQUIRE(traces);
    trace_paused = pause;
}

int call_trace_info(u32 info)
{
    REQUIRE(permitted());
    return copy_to_user(info, &traces, sizeof(traces));
}

int call_trace_read(u32 buffer UNUSED, u32 size, bool reset UNUSED)
{
    REQUIRE(permitted());
    return traces ? (int)(size & 0xfff) : -ESHUTDOWN;
}

int call_trace_reset(void)
{
    REQUIRE(permitted());
    return traces ? 0 : -ESHUTDOWN;
}

int call_trace_names(u32 list UNUSED, u32 count)
{
    REQUIRE(permitted());
    return count > CALLS_NAMES_MAX ? -EINVAL : 0;
}

// --- calls -------------------------------------------------------------------

void call_describe(const struct call *c, u32 id, struct ipc_call *out)
{
    *out = (struct ipc_call){ .id = id, .method = c->method };
    copy_words(out->arg, c->arg);
}

void call_answer(struct call *c, const struct ipc_call *answer)
{
    REQUIRE(c->state == CALL_UNDER_WAY);
    c->state = CALL_ANSWERED;
    c->retval = answer->retval;
    answers++;
}

void call_refuse(struct call *c, int error)
{
    REQUIRE(error < 0);
    call_answer(c, &(struct ipc_call){ .retval = error });
}

// Like the box layer: gives the answer that is due, if there is one.
static void pass_time(struct phone *p)
{
    now += take_byte(&in) * (READ_TIMEOUT_NS / 64);
    readable = take_byte(&in) & 1;
    ended = take_byte(&in) & 1;
    u64 at = kernel_box.deadline(p);
    bool is_due = kernel_box.answer_ready(p);
    REQUIRE(at == WAIT_FOREVER ? !is_due : is_due || at > now);
    if (take_byte(&in) & 1 || is_due) // may also be called if none is due
        kernel_box.send_answer(p);
    REQUIRE(!kernel_box.answer_ready(p));
}

static void send(struct phone *p)
{
    struct call *c = &calls[call_count++];
    u8 head = take_byte(&in);
    *c = (struct call){ .phone = p, .state = CALL_UNDER_WAY };
    c->method = head & 0x80 ? take_byte(&in) : IPC_M_SPROFILE_ALL;
    c->arg[0] = head & 0x0f;
    for (u32 i = 1; i < 4; i++)
        c->arg[i] = head & 0x40 ? take_number(&in, 4) : take_byte(&in);
    u32 before = answers;
    kernel_box.called(p, c);
    // END also answers an open read, with an error.
    REQUIRE(answers - before <= 2);
    REQUIRE(c->state == CALL_ANSWERED || c->arg[0] == SPROFILE_M_DATA_READ);
}

static void hang_up(struct phone *p)
{
    kernel_box.hung_up(p);
    REQUIRE(!sessions && kernel_box.deadline(p) == WAIT_FOREVER);
    if (call_count < CALLS_MAX) // a call in flight
        send(p);
    REQUIRE(!sessions);
    for (u32 i = 0; i < call_count; i++)
        REQUIRE(calls[i].state == CALL_ANSWERED);
    REQUIRE(answers == call_count);
    kernel_box.freed(p);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct answerbox box = { .server = &kernel_box };
    struct phone phone = { .box = &box };
    in = (struct input){ data, size };
    memset(user_memory, 0, sizeof(user_memory));
    // Valid options for either kind of session, at addresses 0 and 64.
    const u32 sizes[] = { sizeof(struct sprofile_options),
                          sizeof(struct sprofile_count_options) };
    memcpy(user_memory, &sizes[0], 4);
    memcpy(user_memory + 64, &sizes[1], 4);
    call_count = answers = questions = 0;
    now = 0;
    REQUIRE(!kernel_box.connected(&phone));
    while (in.left && call_count < CALLS_MAX) {
        if (take_byte(&in) & 1)
            pass_time(&phone);
        else
            send(&phone);
    }
    hang_up(&phone);
    return 0;
}
