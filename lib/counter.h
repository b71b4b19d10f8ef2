// A 64-bit counter that one CPU writes (in interrupts, or with them off) and
// any other may read at any time, without a lock and never torn.
//
// Only when the low half overflows is the counter marked as changing: no other
// change is of more than one word.
#pragma once

#include "lib/seqcount.h"

struct counter {
    u32 low, high;
    struct seqcount seq;
};

static ALWAYS_INLINE void counter_add(struct counter *c, u32 n)
{
    u32 sum;
    if (likely(!__builtin_add_overflow(c->low, n, &sum))) {
        WRITE_ONCE(c->low, sum);
        return;
    }
    seqcount_write_begin(&c->seq);
    WRITE_ONCE(c->low, sum);
    ADD_ONCE(c->high, 1); // in memory: no register is kept for it
    seqcount_write_end(&c->seq);
}

// Spins only while a writer is between two stores.
static inline u64 counter_read(const struct counter *c)
{
    u32 seq, low, high;
    do {
        seq = seqcount_read_begin(&c->seq);
        low = READ_ONCE(c->low);
        high = READ_ONCE(c->high);
    } while (seqcount_read_retry(&c->seq, seq));
    return (u64)high << 32 | low;
}
