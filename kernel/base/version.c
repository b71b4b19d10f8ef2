// The version: the one object that the Makefile compiles with it, for it is
// another one with every commit. VERSION is what `git describe` says, RELEASE
// the number at its beginning.
//
// The arrays are of one size, so that no version moves what is linked behind.

#include "kernel/base/version.h"

#define FULL_VERSION "#1 SMP PREEMPT " VERSION
_Static_assert(sizeof(FULL_VERSION) <= KERNEL_NAME_SIZE,
               "VERSION is too long for uname");

const char kernel_release[KERNEL_NAME_SIZE] = RELEASE;
const char kernel_version[KERNEL_NAME_SIZE] = FULL_VERSION;
