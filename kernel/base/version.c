// The version: the only object compiled with it, because it changes with every
// commit. VERSION is the output of `git describe`, RELEASE the number at its
// beginning.
//
// The arrays have a fixed size, so that no version moves what is linked after
// them.

#include "kernel/base/version.h"

#define FULL_VERSION "#1 SMP PREEMPT " VERSION
_Static_assert(sizeof(FULL_VERSION) <= KERNEL_NAME_SIZE,
               "VERSION is too long for uname");

const char kernel_release[KERNEL_NAME_SIZE] = RELEASE;
const char kernel_version[KERNEL_NAME_SIZE] = FULL_VERSION;
