// The rings of a stream, and waking its readers.
//
// The writer of a ring may be an NMI, which cannot wake a thread. When a ring
// becomes a quarter full, the writer requests an interrupt on its own CPU,
// which wakes the readers. A callout also checks ten times a second: for events
// and slow rings, because an interrupt may be lost, and because a reader that
// polls must be woken when its read times out.
//
// A reader woken by a sample runs right after it, mostly for less than a
// period, so no tick hits the reader. Its targets are overcounted by up to one
// tick for each quarter of a ring (0.15 % with call chains, where a quarter
// holds 500 samples).

#include "arch/irq.h"
#include "kernel/base/errno.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/stream/stream_private.h"

#define RING_MAX MIB(16)
#define EVENTS_BYTES KIB(64)
#define CHECK_PERIOD_NS (100 * NSEC_PER_MSEC)
#define CHECKS_TO_WAKE 10

struct ring *stream_ring(struct stream *s, u32 i)
{
    assert(s->readers && i <= cpu_count);
    return i < cpu_count ? s->rings.of_cpu[i] : &s->rings.events;
}

// --- memory -----------------------------------------------------------------

// All rings of an ordinary user take at most a 16th of memory; all rings of a
// stream, 3/4 of the free addresses.
u32 stream_most_ring_bytes(const struct stream *s)
{
    u32 most = vmap_pages_free() / 4 * 3 / cpu_count * PAGE_SIZE;
    u64 share =
        (u64)frames_total() * PAGE_SIZE / 16 / (s->kind->max_streams / 4);
    if (s->limited)
        most = (u32)MIN(share / cpu_count, (u64)most);
    return MIN(most, RING_MAX);
}

static void free_ring(struct ring *r)
{
    if (r->bytes)
        vmap_free(r->bytes, r->size / PAGE_SIZE);
    r->bytes = NULL;
}

static bool alloc_ring(struct ring *r, u32 bytes)
{
    void *at = vmap_alloc(bytes / PAGE_SIZE, PROT_R | PROT_W, FRAME_BUFFER);
    if (at)
        ring_init(r, at, bytes);
    return at;
}

void stream_free_rings(struct stream *s)
{
    for (u32 i = 0; i <= cpu_count; i++) {
        if (stream_ring(s, i))
            free_ring(stream_ring(s, i));
    }
}

static void check_rings(struct callout *callout);

int stream_alloc_rings(struct stream *s, u32 bytes, struct waitq *readers)
{
    struct stream_rings *r = &s->rings;
    s->readers = readers;
    spin_init(&r->event_lock, "stream events");
    callout_init(&r->check, check_rings, CALLOUT_INTERRUPT);
    bool all = alloc_ring(&r->events, EVENTS_BYTES);
    for (u32 i = 0; all && i < cpu_count; i++)
        all = !r->of_cpu[i] || alloc_ring(r->of_cpu[i], bytes);
    if (all)
        return 0;
    stream_free_rings(s);
    return -ENOMEM;
}

// --- waking -----------------------------------------------------------------

static void check_rings(struct callout *callout)
{
    struct stream *s = container_of(callout, struct stream, rings.check);
    if (stream_readable(s) || ++s->rings.checks % CHECKS_TO_WAKE == 0)
        waitq_wake_all(s->readers);
    callout_set(callout, clock_now_ns() + CHECK_PERIOD_NS);
}

void stream_start_checks(struct stream *s)
{
    callout_set(&s->rings.check, clock_now_ns() + CHECK_PERIOD_NS);
}

void stream_stop_checks(struct stream *s)
{
    callout_drain(&s->rings.check);
}

NOTRACE void stream_wake_soon(struct stream *s)
{
    if (READ_ONCE(s->rings.wake))
        return;
    WRITE_ONCE(s->rings.wake, true);
    irq_raise_deferred();
}

// Reads `streams` without a lock. A stream that has left its slot is freed only
// when every CPU has since passed through an interrupt, so a stream found here
// stays valid until this interrupt returns.
void irq_deferred(void)
{
    for (u32 i = 0; i < STREAMS_MAX; i++) {
        struct stream *s = READ_ONCE(streams[i]);
        if (s && s->readers && READ_ONCE(s->rings.wake))
            waitq_wake_all(s->readers);
    }
}
