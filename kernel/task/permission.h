// Permission to profile tasks and the kernel.
//
// Root, and the users that the kernel argument profile_users= names, may
// profile everything. Other users may profile their own tasks: of the kernel
// they see how long those tasks ran in it, but no addresses.
#pragma once

#include "lib/types.h"

struct task;

// Whether the current task
bool may_profile_everything(void);
bool may_profile(const struct task *t);
