// A sequence counter (a seqlock without the lock): a lock-free reader of data
// that one writer changes sees a change completely or reads again.
//
//     seqcount_write_begin(&s);           do {
//     WRITE_ONCE(a, ...);                     seq = seqcount_read_begin(&s);
//     WRITE_ONCE(b, ...);                     a_then = READ_ONCE(a); ...
//     seqcount_write_end(&s);             } while (seqcount_read_retry(&s,
//     seq));
//
// The counter is odd during a change. Writers are serialised: one CPU with
// interrupts off, or the holders of a lock. An NMI on the writer's CPU may
// write, too, if it changes nothing while the counter is odd
// (seqcount_is_changing): each increment is one instruction. A reader that may
// interrupt the writer must not wait for it, and uses seqcount_peek.
//
// Order: a writer's stores are after its begin and before its end; a reader's
// loads are after its begin and before its retry. On x86 these barriers
// constrain the compiler only.
#pragma once

#include "arch/instructions.h"

struct seqcount {
    u32 value;
};

static ALWAYS_INLINE void seqcount_write_begin(struct seqcount *s)
{
    word_increment(&s->value);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}
static ALWAYS_INLINE void seqcount_write_end(struct seqcount *s)
{
    __atomic_thread_fence(__ATOMIC_RELEASE);
    word_increment(&s->value);
}
// As write_begin, with a full barrier: the writer's later loads are not ordered
// before its begin. If two contexts each mark and then check the other, at
// least one sees the other's mark.
static ALWAYS_INLINE void seqcount_write_begin_full(struct seqcount *s)
{
    __atomic_fetch_add(&s->value, 1, __ATOMIC_SEQ_CST);
}
// For an NMI on the writer's CPU.
static ALWAYS_INLINE bool seqcount_is_changing(const struct seqcount *s)
{
    return word_is_odd(&s->value);
}

// The current value, odd or even: for readers that only check whether there has
// been a change since.
static ALWAYS_INLINE u32 seqcount_peek(const struct seqcount *s)
{
    u32 seq = READ_ONCE(s->value);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return seq;
}
static inline u32 seqcount_read_begin(const struct seqcount *s)
{
    u32 seq;
    while ((seq = seqcount_peek(s)) & 1)
        cpu_relax();
    return seq;
}
// True: read again. `seq` is the result of read_begin, or peek.
static ALWAYS_INLINE bool seqcount_read_retry(const struct seqcount *s, u32 seq)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return unlikely(READ_ONCE(s->value) != seq);
}
// Waits for a change that was in progress at the call: on return it is
// complete, or there was none.
static inline void seqcount_writer_done(const struct seqcount *s)
{
    u32 seq = seqcount_peek(s);
    while (seq & 1 && seqcount_peek(s) == seq)
        cpu_relax();
}
