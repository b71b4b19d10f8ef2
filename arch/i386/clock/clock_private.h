// What the files of the clock share.
#pragma once

#include "arch/clock.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/time/timer.h"

// Measures the TSC and the LAPIC timer (0 where there is no LAPIC) by the best
// counter that works; NULL: none did. Once, from the TSC's probe.
struct timecounter;
struct calibration {
    const struct timecounter *reference;
    u64 tsc_hz;
    u32 lapic_hz;
    u32 error_ppm; // of tsc_hz, at most
};
const struct calibration *clock_calibrate(void);
u32 clock_lapic_hz(void);

// pit.c: the registers of the 8254, for its clock (pit_clock.c) and its timer
// (pit_timer.c). They enter one at a time, on any CPU, in any context;
// interrupts are off inside. False: this is an NMI, and what it interrupted is
// inside.
#define PIT_HZ 1193182u
bool pit_enter(u32 *flags);
void pit_leave(u32 flags);
// Inside: starts a counter in a mode, with `count` of 1 to 65536; stops it.
#define PIT_ONE_SHOT 0u // mode 0: interrupt on terminal count
#define PIT_RATE 2u     // mode 2: counts `count` down to 1, again and again
void pit_load(u32 counter, u32 mode, u32 count);
void pit_halt(u32 counter);
bool pit_loaded(u32 counter); // it has taken its first count
bool pit_out(u32 counter);    // the level of its output
u16 pit_read(u32 counter);
// Counters as of one instant: bits of those that are marked, then each is read.
void pit_latch(u32 counters);
u16 pit_read_latched(u32 counter);

// Where the interrupts of a timer go that is started in this mode.
static inline enum irq_target timer_target(u32 mode)
{
    return mode & TIMER_NMI        ? IRQ_NMI_ALL_CPUS
           : mode & TIMER_ALL_CPUS ? IRQ_ALL_CPUS
                                   : IRQ_BOOT_CPU;
}

// timer_test.c: whether a timer's interrupts reach this CPU; for the end of a
// probe, once the clock runs, interrupts off. One is requested, which finds no
// callback when interrupts are on.
bool timer_interrupts(struct timer *t, const struct irq_source *s, u32 mode,
                      u64 ticks);

// lapic_timer.c, for the clock's events. The rate is 0 without LAPIC.
extern struct timer lapic_timer;
void lapic_timer_found(u32 hz);
bool lapic_timer_has_deadline(void); // and it works
void lapic_timer_deadline_mode(void);
void lapic_timer_deadline(u64 tsc); // 0: none

// Starts the clock, then the event timers with clock_events_init.
void clock_init(void);
void clock_set_tsc_hz(u64 hz);
void clock_events_init(u32 lapic_hz);
// The events need this timer: `timer=` says so, or there is no other.
bool clock_events_want(const struct timer *t);

// CMOS memory of the RTC chip, one byte; any context but NMI. Between accesses
// the index rests on register C, so that an NMI handler may read that blindly.
u8 cmos_read(u8 index);
void cmos_write(u8 index, u8 value);
// Sets those bits that are in `mask`.
void cmos_change(u8 index, u8 mask, u8 value);
// The blind read that acknowledges the RTC's interrupt; any context. It may hit
// another register: whoever has moved the index acknowledges in its place.
void cmos_acknowledge(void);

// Do the CPUs' TSCs agree? The boot CPU asks all others, numbers 1 to cpus - 1,
// which must call tsc_sync_answer again and again meanwhile. If they do not,
// the TSC is no timecounter any more.
void tsc_sync_check(u32 cpus);
void tsc_sync_answer(u32 cpu);
