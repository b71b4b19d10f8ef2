// Thread-local storage segments (set_thread_area).
#pragma once

#include "lib/types.h"

struct thread;

// Reads a struct user_desc and sets the descriptor it names, for current or for
// a thread that has not run yet. With entry number -1 a free entry is chosen
// and written back. -EFAULT, -EINVAL, -ESRCH: no free entry.
int tls_set_from_user(struct thread *t, u32 user_desc);
int tls_get_to_user(u32 user_desc);
