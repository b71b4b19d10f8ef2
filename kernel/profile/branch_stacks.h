// Each thread's own stack of user calls, recorded by the CPUs (arch/lbr.h).
#pragma once

#include "lib/types.h"

// The first user starts recording on all CPUs, the last one ends it. 0,
// -EOPNOTSUPP (lbr_why_not), -ENOMEM. Under streams_lock.
int branch_stacks_start(void);
void branch_stacks_stop(void);
// The callers of the current thread's user code, as return addresses of a
// chain, innermost first; 0: none is known. Interrupts off; NMI-safe.
u32 branch_stacks_callers(u32 *out, u32 max);
