// The machine's clocks, as used by the kernel core.
#pragma once

#include "lib/set.h"
#include "lib/types.h"

struct cpu;

// TSC ticks per second, measured at start-up, and how far that may be off. A
// rate that was not known (timecounter_rate_is_known) is corrected once.
u64 clock_tsc_hz(void);
u32 clock_tsc_error_ppm(void);

// An observer of that correction, for what is computed from the rate in
// advance. Called in thread context, without locks.
struct tsc_rate_observer {
    void (*corrected)(void);
};
#define TSC_RATE_OBSERVER(o) LINKER_SET_ADD(tsc_rate_observers, o)

// Nanoseconds since start-up: the kernel's one monotonic clock, and
// CLOCK_MONOTONIC (kernel/time/timehands.c). Any CPU, any context, NMI too; 0
// before arch_init_devices.
UPCALL u64 clock_now_ns(void);
// TSC ticks to nanoseconds, exact to 1e-9 relative over 100 years.
u64 clock_tsc_to_ns(u64 ticks);

// Arms this CPU's one-shot timer: callouts_interrupt() (kernel/time) is called
// on this CPU, in interrupt context, at `deadline` (clock_now_ns units), or
// very soon if it is past. If it is far away the call may be earlier, and the
// callouts arm again. A later call replaces an earlier one, whose interrupt may
// still occur. Interrupts off.
void clock_arm(u64 deadline_ns);
// Sends another CPU, whose timer interrupt was lost, an interrupt in its place.
// Any context but NMI.
void clock_send_event(const struct cpu *cpu);
// Replaces the timer behind clock_arm, whose interrupts do not come, by another
// one of the machine, for all CPUs, and runs what is due. The log names both.
// 0, or -ENODEV: there is no other. Thread context, interrupts on; one caller
// at a time.
int clock_replace_timer(void);
// The vector of the timer behind clock_arm.
u32 clock_event_vector(void);

// The wall clock kept by the RTC chip, in seconds since 1970 (UTC). ~1 ms.
s64 rtc_read_seconds(void);
int rtc_write_seconds(s64 seconds);
