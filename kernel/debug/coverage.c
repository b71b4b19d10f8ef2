// Coverage of a kernel built with COVERAGE=1: which of its code has ever run.
//
// The compiler calls __sanitizer_cov_trace_pc at the beginning of each basic
// block. It stores one byte and uses no lock and no per-CPU data. So it is safe
// before per-CPU data exists, in an NMI at any place, and on all CPUs at once,
// which write the same value. tools/coverage reads the bytes from the machine's
// memory after the machine has ended.
#include "kernel/debug/coverage.h"

#ifdef COVERAGE

#include "lib/types.h"

// One for each 4 bytes of code: a call is longer than that.
#define TEXT_MAX (4u << 20)
u8 coverage_marks[TEXT_MAX / 4];

extern char text_start[];

void __sanitizer_cov_trace_pc(void)
{
    // The call may be the last instruction of its function, so the byte before.
    u32 at = (u32)__builtin_return_address(0) - 1 - (u32)text_start;
    if (at / 4 < TEXT_MAX / 4)
        coverage_marks[at / 4] = 1;
}

#endif
