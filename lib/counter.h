// A 64-bit counter that one CPU writes (in interrupts, or with them off) and
// any other may read at any time, without a lock and never torn.
//
// The high half is kept twice. When the low half overflows the writer changes
// `high`, `low`, `high_again` in this order, and the reader reads them in the
// other one: if both high halves agree, `low` belongs to them (stores and loads
// each stay in order on x86).
#pragma once

#include "arch/instructions.h"

struct counter {
    u32 high, low, high_again;
};

static ALWAYS_INLINE void counter_add(struct counter *c, u32 n)
{
    u32 sum;
    if (likely(!__builtin_add_overflow(c->low, n, &sum))) {
        WRITE_ONCE(c->low, sum);
        return;
    }
    // (In memory, and read again: no register is kept for it.)
    ADD_ONCE(c->high, 1);
    WRITE_ONCE(c->low, sum);
    WRITE_ONCE(c->high_again, READ_ONCE(c->high));
}

// Spins only while a writer is between two stores.
static inline u64 counter_read(const struct counter *c)
{
    for (;;) {
        u32 high = READ_ONCE(c->high_again);
        u32 low = READ_ONCE(c->low);
        if (READ_ONCE(c->high) == high)
            return (u64)high << 32 | low;
        cpu_relax();
    }
}
