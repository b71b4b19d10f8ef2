// The machine's topology in perf.data, byte by byte as perf expects it.
//
// link: user/libprofile/perf_topology.c user/libprofile/perf_features.c
// link: user/libstrobe/core_clock.c
#include "test.h"

#include "lib/cpu_set.h"
#include "user/libprofile/perf_topology.h"

static struct blob made;
static size_t at;

static u32 take_word(void)
{
    u32 word;
    assert_true(at + sizeof(word) <= made.size);
    memcpy(&word, made.bytes + at, sizeof(word));
    at += sizeof(word);
    return word;
}

static void take_string(const char *wanted)
{
    u32 size = take_word();
    assert_int_equal(size, ALIGN_UP(strlen(wanted) + 1, 64u));
    assert_true(at + size <= made.size);
    assert_string_equal((char *)made.bytes + at, wanted);
    for (u32 i = strlen(wanted); i < size; i++)
        assert_int_equal(made.bytes[at + i], 0);
    at += size;
}

static void take_strings(const char *const *wanted, u32 count)
{
    assert_int_equal(take_word(), count);
    for (u32 i = 0; i < count; i++)
        take_string(wanted[i]);
}

static void begin(void)
{
    blob_free(&made);
    at = 0;
}

static void end(void)
{
    assert_false(made.failed);
    assert_int_equal(at, made.size);
}

// Packages, cores, threads; ids with holes; cores of the same number in
// different packages.
static void packages_and_cores(void **state UNUSED)
{
    static const struct sysinfo_cpu machine[] = {
        { .package = 9, .core = 0, .thread = 0 },
        { .package = 2, .core = 0, .thread = 0 },
        { .package = 9, .core = 0, .thread = 1 },
        { .package = 9, .core = 12, .thread = 0 },
        { .package = 2, .core = 1, .thread = 0 },
        { .package = 9, .core = 12, .thread = 1 },
    };
    static const char *const packages[] = { "0,2-3,5", "1,4" };
    static const char *const cores[] = { "0,2", "1", "3,5", "4" };
    begin();
    perf_topology_make(&made, machine, ARRAY_SIZE(machine));
    take_strings(packages, ARRAY_SIZE(packages));
    take_strings(cores, ARRAY_SIZE(cores));
    for (u32 i = 0; i < ARRAY_SIZE(machine); i++) {
        assert_int_equal(take_word(), machine[i].core);
        // perf refuses numbers above that of the CPUs.
        assert_int_equal(take_word(), machine[i].package == 9);
    }
    end();
}

static void kinds(void **state UNUSED)
{
    static const struct sysinfo_cpu machine[] = {
        { .core = 4, .kind = "efficiency" },
        { .core = 0, .kind = "performance" },
        { .core = 0, .thread = 1, .kind = "performance" },
        { .core = 5, .kind = "" },
        { .core = 6, .kind = "efficiency" },
    };
    begin();
    perf_hybrid_make(&made, machine, ARRAY_SIZE(machine));
    assert_int_equal(take_word(), 2);
    take_string("cpu_core");
    take_string("1-2");
    take_string("cpu_atom");
    take_string("0,4");
    end();
    begin();
    perf_hybrid_make(&made, machine, 1);
    assert_int_equal(take_word(), 1);
    take_string("cpu_atom");
    take_string("0");
    end();
    begin();
    perf_hybrid_make(&made, machine + 3, 1); // the CPU does not say
    end();
}

// The longest lists are whole, and a record of the file has room for all.
static void many_cpus(void **state UNUSED)
{
    static struct sysinfo_cpu machine[CPU_MAX];
    char lists[2][4 * CPU_MAX];
    u32 n[2] = { 0, 0 };
    for (u32 i = 0; i < CPU_MAX; i++) {
        u32 package = machine[i].package = i % 2;
        machine[i].core = i / 2;
        n[package] += (u32)sprintf(lists[package] + n[package],
                                   n[package] ? ",%u" : "%u", i);
    }
    begin();
    perf_topology_make(&made, machine, CPU_MAX);
    assert_int_equal(take_word(), 2);
    take_string(lists[0]);
    take_string(lists[1]);
    assert_int_equal(take_word(), CPU_MAX);
    for (u32 i = 0; i < CPU_MAX; i++)
        machine[i].package = i;
    begin();
    perf_topology_make(&made, machine, CPU_MAX);
    assert_int_equal(take_word(), CPU_MAX);
    assert_true(made.size < UINT16_MAX - 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packages_and_cores),
        cmocka_unit_test(kinds),
        cmocka_unit_test(many_cpus),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    begin();
    return failed;
}
