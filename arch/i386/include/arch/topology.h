// Where a CPU is: package, core, hardware thread; the kind of its core, and its
// caches.
#pragma once

#include "lib/types.h"

enum core_kind { CORE_ANY, CORE_PERFORMANCE, CORE_EFFICIENCY };

struct topology {
    u32 package, core, thread; // core: in the package; thread: in the core
    enum core_kind kind;       // CORE_ANY: the processor is not a hybrid one
    u32 l1d, l1i, l2, l3;      // bytes, 0: not there or not known
};

// Of a CPU below cpu_count, constant. Any context.
const struct topology *cpu_topology(u32 cpu);
