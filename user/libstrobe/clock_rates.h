// The rates of the machine's clocks against each other, measured: counters by
// the kernel's readings (system.clock.readings), the RTC by its second.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_RATES_MAX 16

struct clock_rate {
    char name[16];
    // How much faster it runs than it should by the TSC, whose own is 0.
    double ppm;
    double uncertain_ppm; // bound of the error of reading
    bool disputed;        // others were measured, and none agrees with it
};

// Measures for `ms` milliseconds: longer is more exact, but a counter that
// wraps in that time is wrong (the ACPI timer's takes 4.6 s). Appends the RTC
// if `rtc` is set and its second can be seen, which takes 3 s more. Returns the
// number of clocks, or -1 and errno.
int clock_rates(struct clock_rate rates[CLOCK_RATES_MAX], uint32_t ms,
                bool rtc);
