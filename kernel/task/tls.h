// Thread-local storage segments (set_thread_area).
#pragma once

#include "lib/types.h"

struct thread;

// Reads a struct user_desc and sets the descriptor it names, for a thread that
// does not run yet (`t` != current) or for current. -EFAULT, -EINVAL. With
// entry number -1 a free one is chosen and written back.
int tls_set_from_user(struct thread *t, u32 user_desc);
int tls_get_to_user(u32 user_desc);
