// Patches the kernel's code while it runs.
#pragma once

#include "arch/text.h"

// Makes all sites call `target` or, if not `on`, NOPs again, at once, while the
// other CPUs wait (stop_machine). Panics if a site does not have the old bytes.
// No NMI executes a site, and IRET serialises each CPU that has waited. Fastest
// if the sites are ascending. Thread context without spin locks, may sleep; or
// before the scheduler and the other CPUs run.
void text_patch(const u32 *sites, u32 count, u32 target, bool on);
// One byte, without stopping the machine: every CPU is serialised afterwards.
// The byte must be the first of an instruction that has the same length before
// and after, or one that stops there (INT3). Thread context, may sleep.
void text_patch_byte(u32 address, u8 old, u8 new);
