// Rings of records of different sizes, with one writer: a CPU, or a thread, and
// what interrupts it there (signal handlers; interrupts and NMIs). No call, no
// lock, no locked instruction, no waiting. Others only read
// (user/libread/sensor_read.h).
//
// Positions count units of 8 bytes, without end. The ring has blocks; no record
// lies across the end of one: the rest of a block is then filled with a pad. So
// a reader that was overtaken finds the next record at a block's begin.
//
// A writer takes room and a number by one instruction that changes both, with
// the time read before: an interrupt in between makes it begin again. So the
// order of the places is that of the numbers and of the times. Then it writes
// its record. Writers nest: what interrupted one has ended before that goes on,
// so the outermost, when it is done, publishes all that was taken. A handler
// must therefore return to what it interrupted, not jump out of it.
//
// Loss: a record for which there is no room takes a number only. The gap in the
// numbers of the records around it is exactly what was lost there; so it is
// where a reader was overtaken.
//
// Overwriting: the reader finds by `taken` what may be overwritten since it
// read it. Stopping: what is there stays until the writer's task releases it. A
// record that is not finished is not overwritten, either: a handler that fills
// the whole ring loses the rest.
#pragma once

#include <strobe/sensor.h>

#if defined(__i386__) || defined(__x86_64__)
static inline bool sensor_place_change_(struct sensor_place *p,
                                        struct sensor_place *old,
                                        struct sensor_place next)
{
    bool done; // without lock: all writers are on one CPU
    // clc: as in sensor_count_change.
    __asm__ volatile("clc; cmpxchg8b %1"
                     : "=@ccz"(done), "+m"(*p), "+a"(old->at), "+d"(old->number)
                     : "b"(next.at), "c"(next.number)
                     : "memory");
    return done;
}
static inline void sensor_read_time(struct sensor_wide *w)
{
    __asm__ volatile("rdtsc" : "=a"(w->low), "=d"(w->high)::"memory");
}
#else
static inline bool sensor_place_change_(struct sensor_place *p,
                                        struct sensor_place *old,
                                        struct sensor_place next)
{
    typedef uint64_t __attribute__((may_alias)) both;
    uint64_t expected, wanted;
    __builtin_memcpy(&expected, old, sizeof(expected));
    __builtin_memcpy(&wanted, &next, sizeof(wanted));
    bool done = __atomic_compare_exchange_n((both *)p, &expected, wanted, false,
                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    __builtin_memcpy(old, &expected, sizeof(expected));
    return done;
}
static inline void sensor_read_time(struct sensor_wide *w)
{
    w->low = w->high = 0;
}
#endif

// Copies a payload. Of a size that is known where it is called the compiler
// makes just the moves, where it would make a loop for 32 bytes on i386.
static inline void sensor_copy(void *to, const void *from, uint32_t bytes)
{
    char *out = (char *)to;
    const char *in = (const char *)from;
    uint32_t done = 0;
    if (!__builtin_constant_p(bytes) || bytes >= 64) {
        __builtin_memcpy(to, from, bytes);
        return;
    }
    if (bytes & 32) {
        __builtin_memcpy(out, in, 16);
        __builtin_memcpy(out + 16, in + 16, 16);
        done = 32;
    }
    if (bytes & 16) {
        __builtin_memcpy(out + done, in + done, 16);
        done += 16;
    }
    __builtin_memcpy(out + done, in + done, bytes % 16);
}

static inline uint32_t sensor_ring_units(const struct sensor_ring_layout *l)
{
    return l->bytes / SENSOR_UNIT;
}

// Units of a block.
static inline uint32_t sensor_ring_block(const struct sensor_ring_layout *l)
{
    uint32_t bytes = l->bytes / 4;
    return (bytes < SENSOR_RECORD_MAX ? bytes : SENSOR_RECORD_MAX) /
           SENSOR_UNIT;
}

static inline struct sensor_record *
sensor_ring_at(const void *data, const struct sensor_ring_layout *l,
               uint32_t at)
{
    uint32_t unit = at & (sensor_ring_units(l) - 1);
    return (struct sensor_record *)((char *)data + SENSOR_DATA +
                                    unit * SENSOR_UNIT);
}

// The next block's begin, or `at` itself.
static inline uint32_t
sensor_ring_next_block(const struct sensor_ring_layout *l, uint32_t at)
{
    uint32_t block = sensor_ring_block(l);
    return (at + block - 1) & ~(block - 1);
}

// Publishes what was taken, if this is the outermost writer. What interrupts it
// before `depth` is 0 leaves its record to this one, which then sees that more
// is taken.
static inline void sensor_ring_end_(struct sensor_ring *r)
{
    for (;;) {
        uint32_t depth = __atomic_load_n(&r->depth, __ATOMIC_RELAXED);
        if (depth == 1)
            __atomic_store_n(&r->published,
                             __atomic_load_n(&r->taken.at, __ATOMIC_RELAXED),
                             __ATOMIC_RELEASE);
        __atomic_store_n(&r->depth, depth - 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (depth != 1 || __atomic_load_n(&r->published, __ATOMIC_RELAXED) ==
                              __atomic_load_n(&r->taken.at, __ATOMIC_RELAXED))
            return;
        __atomic_store_n(&r->depth, 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
}

// Writes a record of `bytes` of payload; `type` is not SENSOR_PAD. False: it is
// lost, and counted: no room, or larger than a block. One writer (see above);
// in the kernel: the thread does not leave the CPU meanwhile. NMI-safe.
static inline bool sensor_ring_write(void *data,
                                     const struct sensor_ring_layout *l,
                                     uint32_t type, const void *payload,
                                     uint32_t bytes)
{
    struct sensor_ring *r = (struct sensor_ring *)data;
    uint32_t block = sensor_ring_block(l), start;
    uint32_t units =
        bytes < SENSOR_RECORD_MAX
            ? (sizeof(struct sensor_record) + bytes + SENSOR_UNIT - 1) /
                  SENSOR_UNIT
            : SENSOR_RECORD_MAX;
    // What is not published may still be written.
    const uint32_t *kept = l->stops ? &r->released : &r->published;
    struct sensor_place old, next;
    struct sensor_wide time;
    bool fits;
    __atomic_store_n(&r->depth,
                     __atomic_load_n(&r->depth, __ATOMIC_RELAXED) + 1,
                     __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    old.at = __atomic_load_n(&r->taken.at, __ATOMIC_RELAXED);
    old.number = __atomic_load_n(&r->taken.number, __ATOMIC_RELAXED);
    do {
        uint32_t left = block - (old.at & (block - 1));
        start = units > left ? old.at + left : old.at;
        next.at = start + units;
        next.number = old.number + 1;
        fits = units <= block &&
               next.at - __atomic_load_n(kept, __ATOMIC_RELAXED) <=
                   sensor_ring_units(l);
        if (!fits)
            next.at = old.at;
        sensor_read_time(&time);
    } while (!sensor_place_change_(&r->taken, &old, next));
    // A reader sees that the room is taken before it sees what is in it.
    __atomic_thread_fence(__ATOMIC_RELEASE);
    if (fits) {
        if (start != old.at) {
            struct sensor_record *pad = sensor_ring_at(data, l, old.at);
            pad->size = (uint16_t)((start - old.at) * SENSOR_UNIT);
            pad->type = SENSOR_PAD;
            pad->number = 0;
        }
        struct sensor_record *record = sensor_ring_at(data, l, start);
        record->size = (uint16_t)(sizeof(*record) + bytes);
        record->type = (uint16_t)type;
        record->number = old.number;
        record->time = time;
        sensor_copy(record->payload, payload, bytes);
    }
    sensor_ring_end_(r);
    return fits;
}

// Stopping rings: the writer's task has done with all records before the
// position `at` (of a cursor that has read up to there).
static inline void sensor_ring_release(void *data, uint32_t at)
{
    struct sensor_ring *r = (struct sensor_ring *)data;
    __atomic_store_n(&r->released, at, __ATOMIC_RELEASE);
}
