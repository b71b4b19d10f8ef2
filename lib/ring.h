// A lock-free byte ring with one writer and one reader: the writer may be an
// interrupt or NMI handler on another CPU than the reader's.
//
// `head` is written by the writer only, `tail` by the reader only; each counts
// bytes without end and wraps as u32. Bytes before `head` are published by the
// release store to it. A record is written whole or not at all.
#pragma once

#include "lib/assert.h"
#include "lib/string.h"
#include "lib/types.h"

struct ring {
    u8 *bytes;
    u32 size; // a power of two
    u32 head, tail;
    u32 room_end; // the writer's: end of the contiguous bytes known to be free
};

static inline void ring_init(struct ring *r, void *bytes, u32 size)
{
    assert(size && !(size & (size - 1)));
    *r = (struct ring){ .bytes = (u8 *)bytes, .size = size };
}

// Reader: the end of the published bytes.
static inline u32 ring_head(const struct ring *r)
{
    return __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
}

static inline u32 ring_used(const struct ring *r)
{
    return ring_head(r) - __atomic_load_n(&r->tail, __ATOMIC_RELAXED);
}

// Any CPU: the number of bytes in it, approximate during concurrent writes and
// reads; never more than its size.
static inline u32 ring_fill(const struct ring *r)
{
    // The order matters: the head is never before a tail that was read earlier.
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
    r->room_end = head + n;
    __atomic_store_n(&r->head, head + n, __ATOMIC_RELEASE);
    return true;
}

// Writer: whether n contiguous bytes are free at ring_place, to build a record
// in; ring_commit then publishes them, or fewer. False: ring_write may still
// find room. At each quarter of the ring that fills up ring_has_room fails, and
// the writer must call this again: there it can wake the reader.
static inline bool ring_check_room(struct ring *r, u32 n)
{
    u32 at = r->head & (r->size - 1);
    u32 tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
    u32 used = r->head - tail, quarter = r->size / 4;
    u32 piece = MIN(r->size - used, r->size - at);
    u32 step = used < quarter ? quarter - used : quarter;
    r->room_end = r->head + MIN(piece, MAX(step, n));
    return r->room_end - r->head >= n;
}
// Writer: whether that is known without reading `tail`.
static ALWAYS_INLINE bool ring_has_room(const struct ring *r, u32 n)
{
    return r->room_end - r->head >= n;
}
static ALWAYS_INLINE void *ring_place(const struct ring *r)
{
    return r->bytes + (r->head & (r->size - 1));
}
static ALWAYS_INLINE void ring_commit(struct ring *r, u32 n)
{
    assert_checked(r->room_end - r->head >= n);
    __atomic_store_n(&r->head, r->head + n, __ATOMIC_RELEASE);
}

// Reader: copies n bytes that start `offset` after the tail; the caller knows
// that they are published.
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
