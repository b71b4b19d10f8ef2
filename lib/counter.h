// A 64-bit counter that one CPU writes (in interrupts, or with them off) and
// any CPU may read at any time, without a lock and never torn.
//
// The sequence counter marks a change only when the low half overflows: all
// other changes are of one word. It thus counts each overflow twice, and half
// of it is the counter's high half, of 31 bits.
#pragma once

#include "lib/seqcount.h"

struct counter {
    u32 low;
    struct seqcount overflows;
};

static ALWAYS_INLINE void counter_add(struct counter *c, u32 n)
{
    u32 sum;
    if (likely(!__builtin_add_overflow(c->low, n, &sum))) {
        WRITE_ONCE(c->low, sum);
        return;
    }
    seqcount_write_begin(&c->overflows);
    WRITE_ONCE(c->low, sum);
    seqcount_write_end(&c->overflows);
}

// Spins only while a writer is inside an overflow.
static inline u64 counter_read(const struct counter *c)
{
    u32 seq, low;
    do {
        seq = seqcount_read_begin(&c->overflows);
        low = READ_ONCE(c->low);
    } while (seqcount_read_retry(&c->overflows, seq));
    return (u64)(seq / 2) << 32 | low;
}
