// Memory is out: which task ends for it.
#pragma once

#include "lib/types.h"

// A page that `current` cannot do without could not be had. The task with the
// most memory, pages and page tables, is killed, and is waited for until there
// is some again; never init, nor who shares init's memory. `address` is where
// the page belongs. True: it is worth another try. False: it is not; `current`
// is that task, or no other can be ended. Thread context, may sleep; whatever
// mutexes the caller holds, it does not wait longer than OOM_PATIENCE for one
// task.
bool oom_relieve(u32 address);

#define OOM_PATIENCE (2 * NSEC_PER_SEC)
