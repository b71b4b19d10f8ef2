// Traces of events: which points and functions are recorded, of whom, and what
// the reader gets.
//
// `traces` is walked by the points' listeners, with interrupts off, without a
// lock. It changes under streams_lock: a session is complete when it is put in,
// and after it was taken out every CPU passes through an interrupt before it is
// freed (stream_withdraw). A CPU's part is written by that CPU alone.
//
// Entries and exits of functions are the trace of calls (call_trace.h), whose
// stubs write into the same rings.
#include "arch/clock.h"
#include "arch/cpu.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/call_trace.h"
#include "kernel/profile/trace_private.h"
#include "kernel/stream/stream.h"
#include "kernel/task/permission.h"
#include "kernel/task/task.h"
#include "kernel/trace/point.h"
#include "kernel/trace/record.h"
#include <strobe/calls.h>

#define TRACES_MAX 4u
#define RING_LEAST (2 * PAGE_SIZE)
#define RING_CHOSEN_MOST MIB(1)
// Without a wish, all rings take at most this part of the free memory.
#define MEMORY_PART 8u

static struct trace_session *traces;

static struct trace_session *session_of(struct stream *s)
{
    return container_of(s, struct trace_session, stream);
}

// --- listeners --------------------------------------------------------------

static ALWAYS_INLINE bool is_chosen(const struct trace_session *s)
{
    const struct task *t = current_task(), *only = s->stream.task;
    return only ? t == only : t != s->except;
}

// A switch to or from a chosen thread is one of its events. It is reported by
// the thread that comes.
static ALWAYS_INLINE bool is_wanted(const struct trace_session *s,
                                    struct trace_cpu *c, u32 point)
{
    bool is = is_chosen(s), was = c->was_chosen;
    if (point != TRACE_sched_switch)
        return is;
    c->was_chosen = is;
    return is || was;
}

static ALWAYS_INLINE void record_event(u32 point, const void *fields, u32 bytes)
{
    struct trace_session *s = __atomic_load_n(&traces, __ATOMIC_ACQUIRE);
    u32 cpu = this_cpu()->id;
    for (; s; s = READ_ONCE(s->next)) {
        struct trace_cpu *c = &s->cpu[cpu];
        if (READ_ONCE(s->measured) & 1u << point && is_wanted(s, c, point))
            trace_put(&c->ring, point, fields, bytes);
    }
}

#define POINT(group, name, fields, when)                     \
    static void on_##group##_##name(const void *record)      \
    {                                                        \
        record_event(TRACE_##group##_##name, record,         \
                     sizeof(struct trace_##group##_##name)); \
    }
#include <strobe/points.def>
#undef POINT

static struct trace_listener listeners[] = {
#define POINT(group, name, fields, when) \
    { .point = TRACE_##group##_##name, .fn = on_##group##_##name },
#include <strobe/points.def>
#undef POINT
};

#define ALL_POINTS ((1u << ARRAY_SIZE(listeners)) - 1)
_Static_assert(ARRAY_SIZE(listeners) < 32, "bits of trace_options.points");

// --- start and stop ---------------------------------------------------------

static void start(struct stream *stream)
{
    mutex_assert_held(&streams_lock);
    struct trace_session *s = session_of(stream);
    stream->since_ns = clock_now_ns();
    for (u32 bits = s->points; bits; bits &= bits - 1)
        trace_listen(&listeners[__builtin_ctz(bits)]);
    WRITE_ONCE(s->measured, s->points); // all at once
}

static void stop(struct stream *stream)
{
    mutex_assert_held(&streams_lock);
    struct trace_session *s = session_of(stream);
    if (s->calls_run && call_trace_pause(true))
        panic("pausing the trace of calls failed");
    s->calls_run = false;
    WRITE_ONCE(s->measured, 0);
    for (u32 bits = s->points; bits; bits &= bits - 1)
        trace_unlisten(&listeners[__builtin_ctz(bits)]);
    stream->elapsed_ns += clock_now_ns() - stream->since_ns;
}

static void target_left(struct stream *s UNUSED, struct task *t UNUSED)
{
}

// --- reading ----------------------------------------------------------------

static bool is_readable(struct stream *stream)
{
    struct trace_session *s = session_of(stream);
    bool is = stream_quarter_full(&stream->rings.events);
    for (u32 i = 0; i < cpu_count; i++)
        is |= trace_ring_quarter_full(&s->cpu[i].ring);
    return is;
}

static int put_block(u32 addr, u32 cpu, u32 size, u64 until)
{
    struct trace_block b = { .cpu = cpu, .size = size, .until = until };
    return copy_to_user(addr, &b, sizeof(b));
}

// Bytes of whole records, or -EFAULT.
static int read_ring(struct trace_ring *r, u32 addr, u32 size)
{
    u32 done = 0, n;
    for (;;) {
        const void *from = trace_ring_peek(r, size - done, &n);
        if (!n)
            return (int)done;
        if (copy_to_user(addr + done, from, n))
            return done ? (int)done : -EFAULT;
        trace_ring_consume(r, n);
        done += n;
    }
}

// Of one CPU, or the tasks' events. Bytes with the block's head, or -EFAULT.
static int read_block(struct trace_session *s, u32 cpu, u32 addr, u32 size)
{
    u32 head = sizeof(struct trace_block);
    u64 until = rdtsc();
    if (size < head)
        return 0;
    int n = cpu == TRACE_BLOCK_TASKS
                ? stream_read_events(&s->stream, addr + head, size - head)
                : read_ring(&s->cpu[cpu].ring, addr + head, size - head);
    if (n < 0)
        return n;
    bool full = size - head - (u32)n < TRACE_WORDS_MAX * 4;
    int err = put_block(addr, cpu, (u32)n, full ? 0 : until);
    return err ? err : (int)head + n;
}

// Tasks come first: their names are known before what they do is read. Each
// block has the same share of the room, so that a CPU with many events leaves
// some to the others.
static int read(struct stream *stream, u32 addr, u32 size)
{
    struct trace_session *s = session_of(stream);
    u32 done = 0, empty = (cpu_count + 1) * sizeof(struct trace_block);
    u32 share = MAX(size / (cpu_count + 1), PAGE_SIZE);
    for (u32 i = 0; i <= cpu_count; i++) {
        u32 cpu = i ? i - 1 : TRACE_BLOCK_TASKS;
        int n = read_block(s, cpu, addr + done, MIN(size - done, share));
        if (n < 0)
            return done ? (int)done : n;
        done += (u32)n;
    }
    return done > empty || size < empty ? (int)done : 0;
}

static int info(struct stream *stream, u32 addr)
{
    struct trace_session *s = session_of(stream);
    struct trace_info i = {
        .version = TRACE_VERSION,
        .cpus = cpu_count,
        .tsc_hz = clock_tsc_hz(),
        .ring_bytes = s->ring_bytes,
        .tasks_lost = READ_ONCE(stream->rings.events_lost),
    };
    for (u32 c = 0; c < cpu_count; c++) {
        i.recorded += s->cpu[c].ring.recorded;
        i.lost += trace_ring_lost(&s->cpu[c].ring);
    }
    if (s->calls)
        call_trace_losses(&i.too_deep, &i.no_frames);
    return copy_to_user(addr, &i, sizeof(i));
}

// --- begin and end ----------------------------------------------------------

static void free_session(struct trace_session *s)
{
    if (s->calls)
        call_trace_end();
    for (u32 i = 0; i < cpu_count; i++)
        trace_ring_free(&s->cpu[i].ring);
    stream_free_rings(&s->stream);
    stream_release(&s->stream);
    kfree(s);
}

static void withdraw(struct trace_session *s)
{
    struct trace_session **at = &traces;
    mutex_lock(&streams_lock);
    if (stream_measures(&s->stream))
        stop(&s->stream);
    while (*at != s)
        at = &(*at)->next;
    WRITE_ONCE(*at, s->next);
    stream_withdraw(&s->stream);
    mutex_unlock(&streams_lock);
}

static void end(struct stream *stream)
{
    struct trace_session *s = session_of(stream);
    stream_stop_checks(stream);
    withdraw(s);
    free_session(s);
}

static const struct stream_kind tracing = {
    .max_streams = TRACES_MAX,
    .once = true,
    .start = start,
    .stop = stop,
    .end = end,
    .target_left = target_left,
    .readable = is_readable,
    .read = read,
    .info = info,
};

static u32 choose_ring_bytes(const struct stream *s, u32 asked)
{
    u32 most = stream_most_ring_bytes(s), bytes = RING_LEAST;
    u32 share = frames_free() / MEMORY_PART / cpu_count * PAGE_SIZE;
    most = MIN(most, asked ? asked : MIN(share, RING_CHOSEN_MOST));
    while (bytes * 2 <= most)
        bytes *= 2;
    return bytes;
}

static bool alloc_rings(struct trace_session *s, struct waitq *readers)
{
    bool all = !stream_alloc_rings(&s->stream, 0, readers);
    for (u32 i = 0; all && i < cpu_count; i++) {
        s->cpu[i].was_chosen = true;
        all = trace_ring_alloc(&s->cpu[i].ring, s->ring_bytes,
                               &s->stream.rings.wake);
    }
    return all;
}

// `functions` is freed, or the trace of calls has it.
static int begin_calls(struct trace_session *s, const struct trace_options *o,
                       u32 *functions)
{
    struct trace_ring *rings[CPU_MAX];
    struct calls_options calls = {
        .size = sizeof(calls),
        .task = o->task,
        .depth = o->depth,
        .function_count = o->function_count,
    };
    for (u32 i = 0; i < cpu_count; i++)
        rings[i] = &s->cpu[i].ring;
    int err = call_trace_begin_events(&calls, functions, rings);
    s->calls = s->calls_run = !err;
    return err;
}

static int publish(struct trace_session *s)
{
    mutex_lock(&streams_lock);
    int err = stream_find_slot(&s->stream);
    if (!err) {
        s->next = traces;
        __atomic_store_n(&traces, s, __ATOMIC_RELEASE);
        stream_publish(&s->stream);
    }
    mutex_unlock(&streams_lock);
    return err;
}

static int begin(struct trace_session *s, const struct trace_options *o,
                 u32 *functions, struct waitq *readers)
{
    s->points = o->points;
    s->except = s->stream.profiler;
    if (s->except == &kernel_task)
        s->except = NULL;
    s->ring_bytes = choose_ring_bytes(&s->stream, o->ring_bytes);
    int err = alloc_rings(s, readers) ? publish(s) : -ENOMEM;
    if (err)
        kfree(functions);
    if (err || !functions)
        return err;
    // After the points: what switching them on takes is not in the trace.
    err = begin_calls(s, o, functions);
    if (err)
        withdraw(s);
    return err;
}

int trace_session_begin_with(const struct trace_options *o, u32 *functions,
                             struct waitq *readers, struct stream **out)
{
    struct task *task = o->task ? task_find(o->task) : NULL;
    struct trace_session *s = kzalloc(sizeof(*s));
    int err = o->task && !task ? -ESRCH : s ? 0 : -ENOMEM;
    if (err) {
        kfree(s);
        kfree(functions);
    } else {
        stream_init(&s->stream, &tracing, task, 0);
        err = begin(s, o, functions, readers);
        if (err)
            free_session(s);
    }
    if (task)
        task_unref(task);
    if (err)
        return err;
    stream_start_checks(&s->stream);
    *out = &s->stream;
    return 0;
}

int trace_session_begin(u32 options, struct waitq *readers, struct stream **out)
{
    struct trace_options o;
    u32 *functions = NULL;
    if (copy_from_user(&o, options, sizeof(o)))
        return -EFAULT;
    if (o.size != sizeof(o) || o.points & ~ALL_POINTS ||
        o.depth > CALLS_DEPTH_MAX)
        return -EINVAL;
    int err =
        o.function_count
            ? call_trace_functions(o.functions, o.function_count, &functions)
            : 0;
    return err ? err : trace_session_begin_with(&o, functions, readers, out);
}
