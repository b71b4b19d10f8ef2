// What the TSC, in which all times are measured, counts on this CPU, and what
// is known about the clock of its cores (docs/time.md).
#pragma once

#include <stdint.h>

enum strobe_tsc {
    STROBE_TSC_UNKNOWN,
    STROBE_TSC_FOLLOWS,   // the clock of the core, which varies
    STROBE_TSC_CONSTANT,  // one rate while the CPU runs or halts
    STROBE_TSC_INVARIANT, // one rate in all states
};

enum strobe_turbo {
    STROBE_TURBO_UNKNOWN, // or none
    STROBE_TURBO_ON,
    STROBE_TURBO_OFF, // the CPU has it, and the firmware has disabled it
};

// A rate of the TSC that may be further off is not known.
#define STROBE_TSC_KNOWN_PPM 1000u

// How an idle CPU waits.
enum strobe_idle {
    STROBE_IDLE_UNKNOWN,
    STROBE_IDLE_HLT,
    STROBE_IDLE_MWAIT,
    STROBE_IDLE_POLL, // it runs, in a loop
};

struct strobe_core_clock {
    uint32_t tsc;   // enum strobe_tsc
    uint32_t turbo; // enum strobe_turbo
    uint32_t idle;  // enum strobe_idle
    // 0: unknown. Base: also if the CPUs differ. Maximum: of the fastest CPU.
    uint32_t base_mhz, max_mhz;
    uint32_t tsc_error_ppm; // how far the TSC's rate may be off
    // Cycles of all CPUs while they ran, as measured by APERF and MPERF: of the
    // core, and of a clock of constant rate. 0: not measured.
    uint64_t actual, reference;
};
