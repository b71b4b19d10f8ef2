// sched/pmc of a trace: what two performance counters have counted on a CPU
// between two switches, as an event of the thread that leaves.
#pragma once

#include "arch/pmu.h"
#include <strobe/trace.h>

// Where the counts come from: the CPUs' counters, in tests others. Thread
// context that may sleep, but for `read`.
struct trace_counters {
    // Starts on every CPU. 0, -ENODEV, -EOPNOTSUPP, -EBUSY, -ENOMEM.
    int (*begin)(const struct pmu_event events[TRACE_COUNTERS]);
    void (*end)(void);
    // What was counted on this CPU since. Interrupts are off.
    void (*read)(u64 counts[TRACE_COUNTERS]);
};
extern const struct trace_counters *trace_counters;

// Whether these options want counters.
static inline bool trace_pmc_wanted(const struct trace_options *o)
{
    return o->counters[0][0];
}

// Starts the counters, for one trace at a time. 0; -EINVAL: a name has no end;
// -ENOENT, -ENODEV, -EOPNOTSUPP, -EBUSY, -ENOMEM.
int trace_pmc_begin(const struct trace_options *o) MUST_CHECK;
void trace_pmc_end(void);
