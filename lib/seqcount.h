// A sequence counter: who reads without a lock what one writer changes sees all
// of a change or reads again (a seqlock without the lock).
//
//     seqcount_write_begin(&s);           do {
//     WRITE_ONCE(a, ...);                     seq = seqcount_read_begin(&s);
//     WRITE_ONCE(b, ...);                     a_then = READ_ONCE(a); ...
//     seqcount_write_end(&s);             } while (seqcount_read_retry(&s,
//     seq));
//
// It is odd while a change is under way. Writers are one at a time: one CPU,
// with interrupts off, or the holders of a lock. An NMI of the writer's CPU may
// write, too, if it leaves everything be while the counter is odd
// (seqcount_is_changing): each half is one instruction. Who may interrupt the
// writer does not wait for it: such a reader uses seqcount_peek.
//
// Order: a writer's stores come after its begin and before its end; a reader's
// loads come after its begin and before its retry. On x86 these barriers hold
// back the compiler only.
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
// The same as write_begin, and a full barrier: what the writer then loads is as
// of after its begin. Of two who each mark and then look one sees the other.
static ALWAYS_INLINE void seqcount_write_begin_full(struct seqcount *s)
{
    __atomic_fetch_add(&s->value, 1, __ATOMIC_SEQ_CST);
}
// For an NMI of the writer's CPU.
static ALWAYS_INLINE bool seqcount_is_changing(const struct seqcount *s)
{
    return word_is_odd(&s->value);
}

// As it is now, odd or even: for who only wants to know whether there has been
// a change since.
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
// True: read again. `seq` is what read_begin, or peek, said.
static ALWAYS_INLINE bool seqcount_read_retry(const struct seqcount *s, u32 seq)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return unlikely(READ_ONCE(s->value) != seq);
}
// What was under way here before this call is complete, or seen not to be, when
// it returns.
static inline void seqcount_writer_done(const struct seqcount *s)
{
    u32 seq = seqcount_peek(s);
    while (seq & 1 && seqcount_peek(s) == seq)
        cpu_relax();
}
