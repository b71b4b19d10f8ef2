// Testers (linker set `testers`): what runs, if its kernel argument is given,
// in place of the first program. build/kernel-test.elf has those of
// tests/kernel, the kernel that people boot has none.
#pragma once

#include "lib/set.h"

struct tester {
    const char *argument; // without `=`
    // Called with the argument's value, in a thread, when the system is up.
    NORETURN void (*run)(const char *value);
};
#define TESTER(t) LINKER_SET_ADD(testers, t)
