// In-kernel tests (linker set `tests`), run by `test=all` or `test=name,name`
// in random order from a printed seed (`seed=N` repeats it), reported as TAP.
#pragma once

#include "arch/cpu.h"
#include "kernel/base/log.h"
#include "lib/set.h"

struct kernel_test {
    const char *name; // subsystem.what
    void (*run)(void);
};
#define KERNEL_TEST(id)                                                    \
    static void test_##id(void);                                           \
    static const struct kernel_test kernel_test_##id = { #id, test_##id }; \
    LINKER_SET_ADD(tests, kernel_test_##id);                               \
    static void test_##id(void)

// This machine cannot run the test, which returns then: it counts as skipped.
void test_skip(const char *reason);
void test_fail(const char *file, int line, const char *what);
#define expect(condition)                              \
    do {                                               \
        if (!(condition))                              \
            test_fail(__FILE__, __LINE__, #condition); \
    } while (0)

// How long a test waits for what should come at once, before it says that it
// does not: the host of a virtual machine may be busy elsewhere for seconds.
#define TEST_PATIENCE (60 * NSEC_PER_SEC)

// In a loop that waits for milliseconds: cpu_relax() now and then. (Under
// -icount each takes QEMU a microsecond, as long as 300 instructions.)
#define TEST_RELAX_INSTRUCTIONS 1000u
static inline void test_relax(void)
{
    cpu_run_instructions(TEST_RELAX_INSTRUCTIONS);
    cpu_relax();
}

u32 test_random(void);
