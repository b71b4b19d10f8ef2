// Memory is out: which task ends for it.
#pragma once

#include "lib/types.h"

// There is no frame for a page that `current` needs, at `address`. Kills the
// task with the most memory (pages and page tables; never init, nor a task that
// shares init's memory), and waits until memory is free again. True: the caller
// tries again. False: `current` is that task, or no other task can be killed.
// Thread context, may sleep; the caller may hold mutexes: a task that does not
// end within OOM_PATIENCE is given up.
bool oom_relieve(u32 address);

#define OOM_PATIENCE (2 * NSEC_PER_SEC)
