// Planted bugs (kernel argument `plant=NAME`): each must be reported by its
// checker, or the checker is silent and its tests are worth nothing. The kernel
// of tools/coverage has them, too: what panics, and how, is tested by them.
#pragma once

#if defined(CHECKED) || defined(COVERAGE)
// Runs the bug that the command line names, if any, and says so if it survives.
void plant_run(void);
#else
static inline void plant_run(void)
{
}
#endif
