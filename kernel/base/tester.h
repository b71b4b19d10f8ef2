// Testers (linker set `testers`): run in place of the first program if their
// kernel argument is given. build/kernel-test.elf has those of tests/kernel;
// the regular kernel has none.
#pragma once

#include "lib/set.h"

struct tester {
    const char *argument; // without `=`
    // Called with the argument's value, in a thread, when the system is up.
    NORETURN void (*run)(const char *value);
};
#define TESTER(t) LINKER_SET_ADD(testers, t)
