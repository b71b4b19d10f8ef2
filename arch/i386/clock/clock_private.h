// What the files of the clock share.
#pragma once

#include "arch/clock.h"

// A counter of known frequency that the TSC is measured against.
struct reference {
    const char *name;
    u32 hz;
    u32 mask; // of the bits that count
    u32 (*read)(void);
};
// Each starts its counter; NULL where the machine has none that counts.
const struct reference *hpet_reference(void);
const struct reference *pm_timer_reference(void);
const struct reference *pit_reference(void);
// The one that was used; NULL when there was none.
extern const struct reference *clock_reference;

// Measures the TSC and the LAPIC timer (0 where there is no LAPIC).
struct calibration {
    u64 tsc_hz;
    u32 lapic_hz;
    u32 error_ppm; // of tsc_hz, at most
};
// False when no reference works.
bool clock_calibrate(struct calibration *c);

// The PIT's counter 0 as one-shot timer on ISA interrupt 0.
#define PIT_HZ 1193182u
void pit_start(u32 ticks); // 1 .. 65535
void pit_stop(void);

// Starts clock_now_ns. The event timers follow with clock_events_init.
void clock_init(void);
void clock_set_tsc_hz(u64 hz);
void clock_events_init(u32 lapic_hz);

// CMOS memory of the RTC chip, one byte; any context but NMI. Between accesses
// the index rests on register C, so that an NMI handler may read that blindly.
u8 cmos_read(u8 index);
void cmos_write(u8 index, u8 value);
