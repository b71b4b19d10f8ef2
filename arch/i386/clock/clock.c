// Conversion of TSC ticks, the ledger's unit, to nanoseconds, by multiplication
// and shift; and the start of all clocks.
//
// The factors are written before any reader, and once more into the other set
// if the rate is corrected: a reader that has the old set may go on with it.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/clock/clock_start.h"
#include "kernel/time/timecounter.h"

// ns = (ticks << pre) * multiplier >> 32 >> post, where the multiplier has its
// top bit set (except for a TSC beyond 8 GHz): its rounding is 2.4e-10 at most.
struct factors {
    u64 hz;
    u32 multiplier;
    u8 pre, post;
};
static struct factors sets[2];
static const struct factors *tsc = &sets[0];

u64 clock_tsc_hz(void)
{
    return READ_ONCE(tsc)->hz;
}

// Shift by less than 32: omits C's code for shifts of 32 and more.
static ALWAYS_INLINE u64 shift_left(u64 v, u8 n)
{
    u32 low = (u32)v, high = (u32)(v >> 32);
    __asm__("shldl %%cl, %1, %0; shll %%cl, %1"
            : "+&r"(high), "+&r"(low)
            : "c"(n)
            : "cc");
    return (u64)high << 32 | low;
}
static ALWAYS_INLINE u64 shift_right(u64 v, u8 n)
{
    u32 low = (u32)v, high = (u32)(v >> 32);
    __asm__("shrdl %%cl, %1, %0; shrl %%cl, %1"
            : "+&r"(low), "+&r"(high)
            : "c"(n)
            : "cc");
    return (u64)high << 32 | low;
}

u64 clock_tsc_to_ns(u64 ticks)
{
    const struct factors *f = READ_ONCE(tsc);
    ticks = shift_left(ticks, f->pre);
    u64 low = (u64)(u32)ticks * f->multiplier;
    u64 high = (u64)(u32)(ticks >> 32) * f->multiplier;
    return shift_right(high + (low >> 32), f->post);
}

void clock_set_tsc_hz(u64 hz)
{
    struct factors *f = &sets[tsc == &sets[0]];
    *f = (struct factors){ .hz = hz };
    u64 scaled = hz;
    while (scaled <= NSEC_PER_SEC) {
        scaled <<= 1;
        f->pre++;
    }
    u64 multiplier = ((NSEC_PER_SEC << 32) + scaled / 2) / scaled;
    while (multiplier < 1u << 31 && f->post < 2) {
        f->post++;
        u64 numerator = NSEC_PER_SEC << (32 + f->post);
        multiplier = (numerator + scaled / 2) / scaled;
    }
    f->multiplier = (u32)MIN(multiplier, 0xffffffffull);
    __atomic_store_n(&tsc, f, __ATOMIC_RELEASE);
}

void clock_init(void)
{
    timecounters_init();
    clock_events_init(clock_lapic_hz());
}
