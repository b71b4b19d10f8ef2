// The in-kernel test runner: TAP on the console.

#include "tests/kernel/test.h"

#include "arch/cpu.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/tester.h"
#include "kernel/sched/thread.h"
#include "lib/string.h"
#include "tests/kernel/point_helpers.h"

#define TESTS_MAX 512

KERNEL_ARG(seed, "seed=N: the order and the random numbers of test=");

static u32 random_state;
static bool test_failed;
static const char *skip_reason;

int run_on(struct thread *t, u32 cpu)
{
    struct cpu_set only = cpu_set_of(cpu);
    return thread_set_affinity(t, &only);
}

int run_anywhere(struct thread *t)
{
    struct cpu_set all = cpu_set_below(cpu_count);
    return thread_set_affinity(t, &all);
}

// A hashed counter: lock-free for concurrent threads.
u32 test_random(void)
{
    u32 x = __atomic_add_fetch(&random_state, 0x9e3779b9, __ATOMIC_RELAXED);
    x = (x ^ x >> 16) * 0x85ebca6b; // MurmurHash3's finalizer (A. Appleby)
    x = (x ^ x >> 13) * 0xc2b2ae35;
    return x ^ x >> 16;
}

void test_fail(const char *file, int line, const char *what)
{
    test_failed = true;
    console_printf("# %s:%d: expected %s\n", file, line, what);
}

void test_skip(const char *reason)
{
    skip_reason = reason;
}

static bool selected(const char *name, const char *wanted)
{
    if (!strcmp(wanted, "all") || !wanted[0])
        return true;
    size_t n = strlen(name);
    for (const char *p = wanted; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (!strncmp(p, name, n) && (!p[n] || p[n] == ','))
            return true;
    }
    return false;
}

static u32 parse_seed(void)
{
    u32 seed = 0;
    kernel_arg_number(&arg_seed, &seed);
    return seed ? seed : (u32)rdtsc() | 1;
}

static u32 gather(const struct kernel_test **list, const char *wanted)
{
    u32 n = 0;
    LINKER_SET_FOR_EACH(const struct kernel_test, t, tests) {
        assert(n < TESTS_MAX);
        if (selected((*t)->name, wanted))
            list[n++] = *t;
    }
    for (u32 i = n; i > 1; i--) { // Fisher-Yates
        u32 j = test_random() % i;
        const struct kernel_test *t = list[i - 1];
        list[i - 1] = list[j];
        list[j] = t;
    }
    return n;
}

static void run_test(const struct kernel_test *t, u32 number)
{
    test_failed = false;
    skip_reason = NULL;
    console_printf("# running %s\n", t->name);
    t->run();
    points_settle(); // patching waits for CPUs that a later test keeps busy
    console_printf("%s %u - %s%s%s\n", test_failed ? "not ok" : "ok", number,
                   t->name, skip_reason ? " # SKIP " : "",
                   skip_reason ? skip_reason : "");
}

NORETURN static void tests_run(const char *wanted)
{
    static const struct kernel_test *list[TESTS_MAX];
    random_state = parse_seed();
    console_printf("# seed=%u\n", random_state);
    u32 n = gather(list, wanted), failures = 0, skipped = 0;
    console_printf("1..%u\n", n);
    for (u32 i = 0; i < n; i++) {
        run_test(list[i], i + 1);
        failures += test_failed;
        skipped += skip_reason && !test_failed;
    }
    if (!n)
        console_printf("# no test is called '%s'\n", wanted);
    console_printf("# %u passed, %u failed, %u skipped\n",
                   n - failures - skipped, failures, skipped);
    machine_power_off(failures || !n);
}

static const struct tester test_tester = { "test", tests_run };
TESTER(test_tester);
