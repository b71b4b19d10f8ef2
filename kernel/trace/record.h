// The ring of a trace on one CPU: records of strobe/trace.h, in pages.
//
// Writers are of the ring's CPU, with interrupts off: ordinary context, on top
// of it a traced function that the writer itself calls, on top of it NMIs. A
// writer reserves the place of its record by one instruction, fills it, and
// publishes it by a store of its first word, which is 0 until then. So the
// reader stops at a record that is not complete, whichever writers are
// interrupted there; no count of nested writers is needed.
//
// When no page is free, new records are lost and counted, and the next page
// begins with their number. In a flight the oldest page goes instead: there is
// no reader until the writers have stopped. They are lost, too, while the
// writer is throttled, so that records do not take all of a CPU's time.
//
// The writer clears a page when it opens it: so what was read stays there until
// then, for monitors that have the ring mapped read-only, as a sensor
// (<strobe/sensor.h>, struct sensor_trace).
#pragma once

#include "arch/cpu.h"
#include "arch/instructions.h"
#include "arch/trace_ring.h"
#include "lib/string.h"
#include <strobe/sensor.h>
#include <strobe/trace.h>

struct trace_ring {
    struct trace_place place; // first: the stubs know it
    bool opening;             // a page is being opened
    bool flight;
    // What monitors see, too. `freed` is the reader's, in a flight the writer's
    // until it has stopped; the rest is the writer's. All wrap.
    struct sensor_trace *shared;
    u32 price, burst;        // TSC cycles: for a record; that may be in advance
    u32 paid_for;            // of place.count
    u32 paid_low, paid_high; // the TSC up to which time is paid for
    bool *wake;              // set, with a deferred interrupt, at a quarter
    u8 *bytes;
    u32 pages; // a power of two
    // As `shared->freed`.
    u32 number;      // of the first event that is not freed
    u64 overwritten; // in a flight: records
    // The reader's.
    u32 offset;   // bytes of the page `freed`
    u64 recorded; // records that were read
    // By the last trace_ring_peek: records, and those that are missing there.
    u32 peeked, peeked_lost;
};

// All but trace_put: thread context, may sleep. `bytes`: a power of two, of two
// pages or more. False: no memory.
bool trace_ring_alloc(struct trace_ring *r, u32 bytes, bool *wake,
                      bool flight) MUST_CHECK;
void trace_ring_free(struct trace_ring *r);
// Its memory: a page for the header of a sensor, `shared`, and the ring.
void *trace_ring_memory(const struct trace_ring *r, u32 *pages);
// The same, which the caller is to free: the ring is not used any more.
void *trace_ring_take_memory(struct trace_ring *r, u32 *pages);
// Throttles the writer to a record in `price` TSC cycles, by pages; as many as
// `burst` cycles allow may come at once. Before it writes.
void trace_ring_throttle(struct trace_ring *r, u32 price, u32 burst);
// Empties it; no other CPU uses it yet.
void trace_ring_clear(struct trace_ring *r);
// Any context: whether it should be read soon.
bool trace_ring_quarter_full(const struct trace_ring *r);
// In a flight, without writers: frees the pages whose records are all older
// than `time`, and returns the time from which on all of them are there; 0:
// from the beginning.
u64 trace_ring_keep(struct trace_ring *r, u64 time);
// In a flight, while it is written: copies page `n` of those opened so far to
// `to`, and returns the bytes of its complete records; 0: it is overwritten.
u32 trace_ring_copy(const struct trace_ring *r, u32 n, u8 to[TRACE_PAGE]);
// When the page was opened.
u64 trace_page_time(const u8 page[TRACE_PAGE]);
// One reader at a time, on any CPU. The next complete records, at most `room`
// bytes: up to the end of a page, so there may be more. *bytes is 0: none.
const void *trace_ring_peek(struct trace_ring *r, u32 room, u32 *bytes);
// Frees what the last trace_ring_peek has given.
void trace_ring_consume(struct trace_ring *r, u32 bytes);
// The time before which all records of all CPUs are in their rings. Thread
// context, interrupts on.
u64 trace_complete_until(void);
// Records lost so far, and how many of them because the writer was throttled.
u32 trace_ring_lost(const struct trace_ring *r);
u32 trace_ring_throttled(const struct trace_ring *r);

// Copies `bytes`, a constant, and fills the last word up with 0.
static ALWAYS_INLINE void trace_copy(u32 *to, const void *fields, u32 bytes)
{
    typedef u32 __attribute__((may_alias, aligned(1))) any_word;
    const any_word *from = fields;
    const u8 *rest = (const u8 *)fields + bytes / 4 * 4;
#pragma GCC unroll 32
    for (u32 i = 0; i < bytes / 4; i++)
        to[i] = from[i];
    u32 last = 0;
    if (bytes % 4 > 2)
        last = (u32)rest[2] << 16;
    if (bytes % 4 > 1)
        last |= (u32)rest[1] << 8;
    if (bytes % 4)
        to[bytes / 4] = last | rest[0];
}

// All: any context on the ring's CPU, with interrupts off; NMIs too.

// Another thread runs, and no event says so: a TIME record, which names it, is
// to precede the next record. Epochs ascend: a writer takes this one for an old
// one.
static ALWAYS_INLINE void trace_ring_thread_changed(struct trace_ring *r)
{
    WRITE_ONCE(r->place.epoch, READ_ONCE(r->place.epoch) - 1);
}

// The place of a record of `words` words, and above it the low word of its
// time. 0: it is lost.
u64 trace_ring_reserve(struct trace_ring *r, u32 words);

static ALWAYS_INLINE void trace_publish(u32 *record, u32 low, u32 type,
                                        u32 words)
{
    __atomic_store_n(record, TRACE_HEAD(low, type, words), __ATOMIC_RELEASE);
}

// `bytes`: a constant. False: it was lost.
static ALWAYS_INLINE bool trace_put(struct trace_ring *r, u32 type,
                                    const void *fields, u32 bytes)
{
    u32 words = 1 + (bytes + 3) / 4, low;
    // The place before the time: so times ascend, and if another writer comes
    // between, the exchange fails.
    u32 at = READ_ONCE(r->place.at);
    if (unlikely(!word_is(&r->place.epoch, trace_time(&low)) ||
                 at + words * 4 > READ_ONCE(r->place.limit) ||
                 !word_replace(&r->place.at, at, at + words * 4))) {
        u64 place = trace_ring_reserve(r, words);
        if (!place)
            return false;
        at = (u32)place;
        low = (u32)(place >> 32);
    } else {
        word_increment(&r->place.count);
    }
    trace_copy((u32 *)at + 1, fields, bytes);
    trace_publish((u32 *)at, low, type, words);
    return true;
}
