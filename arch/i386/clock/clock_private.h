// Interfaces between the files of arch/i386/clock.
#pragma once

#include "arch/clock.h"
#include "arch/i386/clock/pit_chip.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/time/timer.h"

// Measures the rates of the TSC and the LAPIC timer (0 without a LAPIC) by the
// best counter that works. Called once, by the TSC's probe.
struct calibration {
    const char *by; // the clock's name, or who states it; NULL: it is assumed
    bool stated;    // not measured
    u64 tsc_hz;
    u32 lapic_hz;
    u32 error_ppm; // upper bound of tsc_hz's error
};
const struct calibration *clock_calibrate(void);
u32 clock_lapic_hz(void);

// pit.c: exclusive access to the registers of the interval timer, for its clock
// (pit_clock.c) and its timer (pit_timer.c). Any CPU, any context; interrupts
// are off between enter and leave. False: the caller is an NMI that interrupted
// this CPU between the two.
bool pit_enter(u32 *flags);
void pit_leave(u32 flags);

// The target of the interrupts of a timer started in this mode.
static inline enum irq_target timer_target(u32 mode)
{
    return mode & TIMER_NMI        ? IRQ_NMI_ALL_CPUS
           : mode & TIMER_ALL_CPUS ? IRQ_ALL_CPUS
                                   : IRQ_BOOT_CPU;
}

// timer_test.c: whether a timer's interrupts reach this CPU. For the end of a
// probe, once the clock runs, with interrupts off. One interrupt is requested;
// when interrupts are on it finds no callback.
bool timer_interrupts(struct timer *t, const struct irq_source *s, u32 mode,
                      u64 ticks);

// lapic_timer.c, for the clock's events. The rate is 0 without a LAPIC.
extern struct timer lapic_timer;
void lapic_timer_found(u32 hz);
void lapic_timer_scale(u64 from, u64 to); // its rate is `to / from` of that
bool lapic_timer_has_deadline(void);      // the CPU has it, and it works
void lapic_timer_deadline_mode(void);
void lapic_timer_deadline(u64 tsc); // 0: none

void clock_set_tsc_hz(u64 hz);
void clock_events_init(u32 lapic_hz);
void clock_events_corrected(void); // the TSC's and the LAPIC timer's rates
// Whether the events need this timer: `timer=` names it, or there is no other.
bool clock_events_use(const struct timer *t);

// CMOS memory of the RTC chip, one byte; any context but NMI. Between accesses
// the index selects register C, so that an NMI handler may read that without
// the lock.
u8 cmos_read(u8 index);
void cmos_write(u8 index, u8 value);
// Changes the bits of `mask` to those of `value`.
void cmos_change(u8 index, u8 mask, u8 value);
// Acknowledges the RTC's interrupt by a lockless read; any context. It may read
// another register, if an access is in progress: that access acknowledges then.
void cmos_acknowledge(void);

// tsc.c: the TSC, read in the order of the program.
u64 tsc_read(void);
// The TSC does not tell the time any more.
void tsc_demote(const char *why);
