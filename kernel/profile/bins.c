// The bins of the address-bin profiler.
//
// Threads of one task add concurrently on several CPUs, also in NMIs. An
// addition is a compare-and-swap loop, so that no tick is lost and no counter
// wraps.

#include "kernel/profile/bins.h"

#include "lib/string.h"

void bins_init(struct bins *b, u32 low, u32 high)
{
    memset(b, 0, sizeof(*b));
    b->data.low = low;
    b->data.high = high;
    b->size = prof_bin_size(&b->data);
    b->data.bins_used = (high - low) / b->size + 1;
}

bool bins_add(struct bins *b, u32 pc, u32 ticks)
{
    u32 offset = pc - b->data.low;
    if (offset > b->data.high - b->data.low)
        return true;
    u32 *bin = &b->data.bins[offset / b->size];
    u32 old = READ_ONCE(*bin), sum;
    do {
        if (__builtin_add_overflow(old, ticks, &sum))
            sum = ~0u;
    } while (!__atomic_compare_exchange_n(bin, &old, sum, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return sum != ~0u;
}

void bins_read(const struct bins *b, struct prof_data *out)
{
    out->low = b->data.low;
    out->high = b->data.high;
    out->bins_used = b->data.bins_used;
    for (u32 i = 0; i < PROF_BINS; i++)
        out->bins[i] = READ_ONCE(b->data.bins[i]);
}
