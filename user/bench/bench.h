// What the parts of bench share.
#pragma once

#include <stdint.h>

uint64_t rdtsc(void);
// Ends the program with `what` and errno unless the condition holds.
void must(int condition, const char *what);

// What watching the machine costs: lines "NAME-TASKS INSTRUCTIONS". (watch.c)
void watch(void);

// What profiling costs: lines "NAME INSTRUCTIONS". (sampling.c)
void sampling(void);
// Calls `what` with 17 functions on the stack.
uint32_t on_deep_stack(uint32_t (*what)(void));

// What it costs the tool that records. (recording.c)
void recording(void);
