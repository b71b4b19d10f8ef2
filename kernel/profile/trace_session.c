// Traces of events: which points and functions are recorded, of whom, and what
// the reader gets.
//
// The session's target (kernel/trace/emit.h) is what the points see of it. It
// is put in and taken out under streams_lock; then every CPU passes through an
// interrupt before it is freed (stream_withdraw).
//
// Entries and exits of functions are the trace of calls (call_trace.h), whose
// stubs write into the same rings.
#include "arch/clock.h"
#include "arch/cpu.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/providers.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/call_trace.h"
#include "kernel/profile/trace_pmc.h"
#include "kernel/profile/trace_private.h"
#include "kernel/sensor/trace_sensor.h"
#include "kernel/stream/stream.h"
#include "kernel/task/permission.h"
#include "kernel/task/task.h"
#include "kernel/trace/calls.h"
#include <strobe/calls.h>

#define TRACES_MAX 4u

#define RING_LEAST (2 * PAGE_SIZE)
#define RING_CHOSEN_MOST MIB(1)
// Of a CPU's time, 1 in so many may be spent on events; more in a burst. Traced
// functions take what they take: whoever traces them has chosen how many.
#define EVENTS_PART 4u
#define BURST_MS 100u

// Without a wish, all rings take at most this part of the free memory.
#define MEMORY_PART 8u

static struct trace_session *session_of(struct stream *s)
{
    return container_of(s, struct trace_session, stream);
}

// --- start and stop ---------------------------------------------------------

static void start(struct stream *stream)
{
    mutex_assert_held(&streams_lock);
    struct trace_session *s = session_of(stream);
    stream->since_ns = clock_now_ns();
    trace_target_set(&s->target, s->points);
}

// The last milliseconds of a flight. No CPU writes into the rings.
static void land(struct trace_session *s)
{
    u64 age = clock_tsc_hz() / 1000 * s->flight_ms, now = rdtsc();
    u64 from = now > age ? now - age : 0;
    s->since = 0;
    for (u32 i = 0; i < cpu_count; i++)
        s->since = MAX(s->since, trace_ring_keep(&s->target.cpu[i].ring, from));
    WRITE_ONCE(s->readable, true);
}

static void stop(struct stream *stream)
{
    mutex_assert_held(&streams_lock);
    struct trace_session *s = session_of(stream);
    if (s->calls_run)
        call_trace_pause(true);
    s->calls_run = false;
    trace_target_set(&s->target, 0);
    if (s->flight_ms)
        land(s);
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
        is |= trace_ring_quarter_full(&s->target.cpu[i].ring);
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
static int read_block(struct trace_session *s, u32 cpu, u32 addr, u32 size,
                      u64 until)
{
    u32 head = sizeof(struct trace_block);
    if (size < head)
        return 0;
    int n = cpu == TRACE_BLOCK_TASKS
                ? stream_read_events(&s->stream, addr + head, size - head)
                : read_ring(&s->target.cpu[cpu].ring, addr + head, size - head);
    if (n < 0)
        return n;
    bool full = size - head - (u32)n < TRACE_WORDS_MAX * 4;
    int err = put_block(addr, cpu, (u32)n, full ? 0 : until);
    return err ? err : (int)head + n;
}

// Tasks come first: their names are known before what they do is read. Each
// block has the same share of the room, so that a CPU with many events leaves
// some to the others. A flight has nothing but tasks until it stops.
static int read(struct stream *stream, u32 addr, u32 size)
{
    struct trace_session *s = session_of(stream);
    u32 blocks = READ_ONCE(s->readable) ? cpu_count + 1 : 1;
    u32 done = 0, empty = blocks * sizeof(struct trace_block);
    u32 share = MAX(size / blocks, PAGE_SIZE);
    u64 until = trace_complete_until();
    for (u32 i = 0; i < blocks; i++) {
        u32 cpu = i ? i - 1 : TRACE_BLOCK_TASKS;
        int n = read_block(s, cpu, addr + done, MIN(size - done, share), until);
        if (n < 0)
            return done ? (int)done : n;
        done += (u32)n;
    }
    return done > empty || size < empty ? (int)done : 0;
}

// The pages that a ring has now, behind a block's head, up to the first record
// that is not complete: it is later than `until`. Bytes or -EFAULT.
static int copy_ring(struct trace_session *s, u32 cpu, u32 addr, u64 until,
                     u8 *room)
{
    const struct trace_ring *r = &s->target.cpu[cpu].ring;
    u32 end = READ_ONCE(r->shared->opened), done = sizeof(struct trace_block);
    bool first = true;
    for (u32 n = READ_ONCE(r->shared->freed); n != end; n++) {
        u32 bytes = trace_ring_copy(r, n, room);
        if (bytes && first && n)
            s->since = MAX(s->since, trace_page_time(room));
        first &= !bytes;
        if (copy_to_user(addr + done, room, bytes))
            return -EFAULT;
        done += bytes;
        if (bytes && bytes < PAGE_SIZE)
            break;
    }
    int err = put_block(addr, cpu, done - sizeof(struct trace_block), until);
    return err ? err : (int)done;
}

static int copy_rings(struct trace_session *s, u32 addr, u8 *room)
{
    u64 until = trace_complete_until();
    int done = 0;
    s->since = 0;
    for (u32 i = 0; i < cpu_count; i++) {
        int n = copy_ring(s, i, addr + (u32)done, until, room);
        if (n < 0)
            return n;
        done += n;
    }
    return done;
}

// The tasks' events are read, and not copied: whoever flies keeps them.
static int copy(struct stream *stream, u32 addr, u32 size)
{
    struct trace_session *s = session_of(stream);
    u32 all = cpu_count * (s->ring_bytes + sizeof(struct trace_block));
    if (READ_ONCE(s->readable))
        return -EINVAL;
    if (size < all + PAGE_SIZE)
        return -ENOSPC;
    u8 *room = kmalloc(PAGE_SIZE);
    if (!room)
        return -ENOMEM;
    int tasks = read_block(s, TRACE_BLOCK_TASKS, addr, size - all, 0);
    int rings = tasks < 0 ? tasks : copy_rings(s, addr + (u32)tasks, room);
    kfree(room);
    return rings < 0 ? rings : tasks + rings;
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
        .event_cycles = s->event_cycles,
        .tsc_error_ppm = clock_tsc_error_ppm(),
        .since = s->since,
    };
    for (u32 c = 0; c < cpu_count; c++) {
        i.overwritten += s->target.cpu[c].ring.overwritten;
        i.recorded += s->target.cpu[c].ring.recorded;
        i.lost += trace_ring_lost(&s->target.cpu[c].ring);
        i.throttled += trace_ring_throttled(&s->target.cpu[c].ring);
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
    if (s->pmc)
        trace_pmc_end();
    for (u32 i = 0; i < cpu_count; i++) {
        if (s->target.cpu[i].sensor)
            trace_sensor_close(s->target.cpu[i].sensor, &s->target.cpu[i].ring);
        trace_ring_free(&s->target.cpu[i].ring);
    }
    stream_free_rings(&s->stream);
    stream_release(&s->stream);
    kfree(s);
}

static void withdraw(struct trace_session *s)
{
    mutex_lock(&streams_lock);
    if (stream_measures(&s->stream))
        stop(&s->stream);
    trace_target_remove(&s->target);
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
    .names_all = true,
    .start = start,
    .stop = stop,
    .end = end,
    .target_left = target_left,
    .readable = is_readable,
    .read = read,
    .info = info,
    .copy = copy,
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
        all = trace_ring_alloc(&s->target.cpu[i].ring, s->ring_bytes,
                               &s->stream.rings.wake, s->flight_ms != 0);
    }
    return all;
}

// For monitors: what they see first is that the rings are empty.
static int open_sensors(struct trace_session *s)
{
    u32 number = trace_sensor_number();
    int err = 0;
    for (u32 i = 0; !err && i < cpu_count; i++)
        err = trace_sensor_open(&s->target.cpu[i].ring, number, i,
                                s->stream.uid, &s->target.cpu[i].sensor);
    return err;
}

// `functions` is freed, or the trace of calls has it.
static int begin_calls(struct trace_session *s, const struct trace_options *o,
                       u32 *functions)
{
    struct trace_ring *rings[CPU_MAX];
    struct calls_options calls = {
        .size = sizeof(calls),
        .mode = o->calls_only ? CALLS_ENTRIES : CALLS_EVENTS,
        .task = o->task,
        .depth = o->depth,
        .function_count = o->function_count,
    };
    for (u32 i = 0; i < cpu_count; i++)
        rings[i] = &s->target.cpu[i].ring;
    int err = call_trace_begin_events(&calls, functions, rings);
    s->calls = s->calls_run = !err;
    return err;
}

static void throttle(struct trace_session *s)
{
    u32 price = EVENTS_PART * s->event_cycles;
    u32 burst = (u32)(clock_tsc_hz() / 1000 * BURST_MS);
    for (u32 i = 0; i < cpu_count; i++)
        trace_ring_throttle(&s->target.cpu[i].ring, price, burst);
}

static int publish(struct trace_session *s, bool throttled)
{
    mutex_lock(&streams_lock);
    int err = stream_find_slot(&s->stream);
    if (!err) {
        s->event_cycles = trace_target_measure(&s->target);
        if (throttled)
            throttle(s);
        trace_target_add(&s->target);
        stream_publish(&s->stream);
    }
    mutex_unlock(&streams_lock);
    return err;
}

static int begin(struct trace_session *s, const struct trace_options *o,
                 u32 *functions, struct waitq *readers)
{
    s->points = o->points;
    s->flight_ms = o->flight_ms;
    s->readable = !o->flight_ms;
    s->target.only = s->stream.task;
    s->target.except = s->stream.profiler;
    if (s->target.except == &kernel_task)
        s->target.except = NULL;
    s->ring_bytes = choose_ring_bytes(&s->stream, o->ring_bytes);
    int err = alloc_rings(s, readers) ? open_sensors(s) : -ENOMEM;
    if (!err && trace_pmc_wanted(o)) {
        err = trace_pmc_begin(o);
        s->pmc = !err;
    }
    if (!err)
        err = publish(s, !functions);
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
    struct trace_session *s =
        kzalloc(sizeof(*s) + cpu_count * sizeof(s->target.cpu[0]));
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
    if (o.size != sizeof(o) || o.points & ~TRACE_ALL_POINTS ||
        o.depth > CALLS_DEPTH_MAX || o.calls_only > 1 ||
        (o.calls_only && o.depth))
        return -EINVAL;
    int err =
        o.function_count
            ? call_trace_functions(o.functions, &o.function_count, &functions)
            : 0;
    return err ? err : trace_session_begin_with(&o, functions, readers, out);
}

// --- system.profile.traces ---------------------------------------------------

static void fill(const struct trace_session *s, struct sysinfo_trace *out)
{
    *out = (struct sysinfo_trace){
        .owner = s->stream.owner,
        .target = s->stream.task ? s->stream.task->id : SYSINFO_ALL,
        .points = (u32)__builtin_popcount(s->points),
        .flight = (u64)s->flight_ms * 1000000,
        .room = (u64)s->ring_bytes * cpu_count,
        .elapsed = stream_elapsed_ns(&s->stream),
    };
    strlcpy(out->state, stream_measures(&s->stream) ? "taking" : "over",
            sizeof(out->state));
    for (u32 i = 0; i < cpu_count; i++) {
        const struct trace_ring *r = &s->target.cpu[i].ring;
        out->read += r->recorded;
        out->lost += trace_ring_lost(r);
        out->throttled += trace_ring_throttled(r);
        out->overwritten += r->overwritten;
    }
}

void traces_each(void (*fn)(const struct sysinfo_trace *, void *), void *arg)
{
    mutex_lock(&streams_lock);
    for (u32 i = 0; i < STREAMS_MAX; i++) {
        struct sysinfo_trace record;
        if (!streams[i] || streams[i]->kind != &tracing)
            continue;
        fill(session_of(streams[i]), &record);
        fn(&record, arg);
    }
    mutex_unlock(&streams_lock);
}
