// Who may profile what, and see of the kernel.
//
// Everything: root, and the users that the kernel argument profile_users=
// names. Others profile their own tasks; of the kernel they see how long those
// were in it, and no address.
#pragma once

#include "lib/types.h"

struct task;

// The current task:
bool may_profile_everything(void);
bool may_profile(const struct task *t);
