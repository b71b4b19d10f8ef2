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

// Counts the test as skipped; the test then returns. For a machine that cannot
// run it.
void test_skip(const char *reason);
void test_fail(const char *file, int line, const char *what);
#define expect(condition)                              \
    do {                                               \
        if (!(condition))                              \
            test_fail(__FILE__, __LINE__, #condition); \
    } while (0)

// Timeout of a test for an event that is due at once. Long, as a virtual
// machine's host may stop its CPUs for seconds.
#define TEST_PATIENCE (60 * NSEC_PER_SEC)

// For loops that wait for milliseconds: one cpu_relax() per 1000 instructions.
// (Under -icount a cpu_relax() takes QEMU 1 us, as long as 300 instructions.)
#define TEST_RELAX_INSTRUCTIONS 1000u
static inline void test_relax(void)
{
    cpu_run_instructions(TEST_RELAX_INSTRUCTIONS);
    cpu_relax();
}

u32 test_random(void);

// Binds a thread to one CPU, or lets it use all. 0 or a negative errno.
int run_on(struct thread *t, u32 cpu);
int run_anywhere(struct thread *t);

// How often a test does what all CPUs wait for, such as patching, or what all
// of them do each time. Emulated CPUs take turns on the host's: one stop of 8
// CPUs takes up to 30 ms, and more on kernels with checkers.
static inline u32 test_rounds(u32 on_one_cpu)
{
#if defined(KASAN) || defined(KCSAN)
    u32 slower = cpu_count > 1 ? 4 : 1;
#else
    u32 slower = 1;
#endif
    return DIV_ROUND_UP(on_one_cpu, cpu_count * slower);
}
