// A byte ring with one writer and one reader, no lock: the writer may be an
// interrupt or NMI handler on another CPU than the reader.
//
// `head` is written by the writer only, `tail` by the reader only; each counts
// bytes for ever and wraps with u32. Bytes before `head` are published by the
// release store to it. A record is written whole or not at all.
#pragma once

#include "lib/assert.h"
#include "lib/string.h"
#include "lib/types.h"

struct ring {
    u8 *bytes;
    u32 size; // a power of two
    u32 head, tail;
    u32 sure; // the writer's: what it knows to be free, in one piece, ends here
};

static inline void ring_init(struct ring *r, void *bytes, u32 size)
{
    assert(size && !(size & (size - 1)));
    *r = (struct ring){ .bytes = (u8 *)bytes, .size = size };
}

// Reader: where what is published ends.
static inline u32 ring_head(const struct ring *r)
{
    return __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
}

static inline u32 ring_used(const struct ring *r)
{
    return ring_head(r) - __atomic_load_n(&r->tail, __ATOMIC_RELAXED);
}

// Anybody: how full it is, give or take what goes in and out meanwhile; never
// more than its size.
static inline u32 ring_fill(const struct ring *r)
{
    // In this order: the head is never behind a tail that was seen before it.
    u32 tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
    u32 head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
    return MIN(head - tail, r->size);
}

// Writer. False when there is no room for all n bytes.
static inline bool ring_write(struct ring *r, const void *data, u32 n)
{
    u32 head = r->head;
    u32 tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
    if (n > r->size - (head - tail))
        return false;
    u32 at = head & (r->size - 1);
    u32 first = MIN(n, r->size - at);
    memcpy(r->bytes + at, data, first);
    memcpy(r->bytes, (const u8 *)data + first, n - first);
    r->sure = head + n;
    __atomic_store_n(&r->head, head + n, __ATOMIC_RELEASE);
    return true;
}

// Writer: whether n bytes are free in one piece, at ring_place, to build a
// record in, which ring_commit then publishes, or fewer of them. False:
// ring_write may still find room. The writer has to look again when the ring
// has become a quarter full, and from then on at each further quarter: there it
// can wake the reader.
static inline bool ring_look(struct ring *r, u32 n)
{
    u32 at = r->head & (r->size - 1);
    u32 tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
    u32 used = r->head - tail, quarter = r->size / 4;
    u32 piece = MIN(r->size - used, r->size - at);
    u32 step = used < quarter ? quarter - used : quarter;
    r->sure = r->head + MIN(piece, MAX(step, n));
    return r->sure - r->head >= n;
}
// Writer: whether that is known without a look.
static ALWAYS_INLINE bool ring_sure(const struct ring *r, u32 n)
{
    return r->sure - r->head >= n;
}
static ALWAYS_INLINE void *ring_place(const struct ring *r)
{
    return r->bytes + (r->head & (r->size - 1));
}
static ALWAYS_INLINE void ring_commit(struct ring *r, u32 n)
{
    assert_checked(r->sure - r->head >= n);
    __atomic_store_n(&r->head, r->head + n, __ATOMIC_RELEASE);
}

// Reader: copies n bytes that start `offset` behind the tail; the caller knows
// that they are there.
static inline void ring_peek(const struct ring *r, u32 offset, void *out, u32 n)
{
    assert_checked(offset <= ring_used(r) && n <= ring_used(r) - offset);
    u32 at = (r->tail + offset) & (r->size - 1);
    u32 first = MIN(n, r->size - at);
    memcpy(out, r->bytes + at, first);
    memcpy((u8 *)out + first, r->bytes, n - first);
}

static inline void ring_consume(struct ring *r, u32 n)
{
    assert_checked(n <= ring_used(r));
    __atomic_store_n(&r->tail, r->tail + n, __ATOMIC_RELEASE);
}
