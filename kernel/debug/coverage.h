// Called by the compiler's code in a kernel built with COVERAGE=1, see
// coverage.c.
#pragma once

#ifdef COVERAGE

// In each basic block. Any context, also before memory is set up.
void __sanitizer_cov_trace_pc(void);

#endif
