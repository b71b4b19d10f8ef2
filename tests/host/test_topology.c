// arch/i386/cpu/topology_decode.c on tables of CPUID leaves: packages, cores,
// hardware threads, kinds of cores, caches.
// link: arch/i386/cpu/topology_decode.c
#include "test.h"

#include "arch/i386/cpu/topology.h"

struct leaf {
    u32 leaf, subleaf, r[4];
};

#define LEAVES_MAX 64

static struct leaf leaves[LEAVES_MAX];
static u32 leaf_count;
static u32 lapic_id;

static void read_leaf(u32 leaf, u32 subleaf, u32 registers[4])
{
    memset(registers, 0, 4 * sizeof(u32));
    for (u32 i = 0; i < leaf_count; i++) {
        if (leaves[i].leaf == leaf && leaves[i].subleaf == subleaf)
            memcpy(registers, leaves[i].r, sizeof(leaves[i].r));
    }
}

static void set(u32 leaf, u32 subleaf, u32 a, u32 b, u32 c, u32 d)
{
    assert_true(leaf_count < LEAVES_MAX);
    leaves[leaf_count++] = (struct leaf){ leaf, subleaf, { a, b, c, d } };
}

static void begin(u32 highest)
{
    leaf_count = 0;
    set(0, 0, highest, 0, 0, 0);
}

static void set_cache(u32 leaf, u32 index, u32 type, u32 level, u32 ways,
                      u32 line, u32 sets)
{
    set(leaf, index, level << 5 | type, (ways - 1) << 22 | (line - 1), sets - 1,
        0);
}

static void set_level(u32 leaf, u32 index, u32 type, u32 shift, u32 apic_id)
{
    set(leaf, index, shift, type ? 1u << shift : 0, type << 8 | index, apic_id);
}

static struct topology read_topology(void)
{
    struct topology t;
    memset(&t, 0xee, sizeof(t));
    topology_read(read_leaf, lapic_id, &t);
    return t;
}

static void expect_place(u32 package, u32 core, u32 thread)
{
    struct topology t = read_topology();
    assert_int_equal(t.package, package);
    assert_int_equal(t.core, core);
    assert_int_equal(t.thread, thread);
}

// Two threads a core, up to 8 cores: leaf 0BH.
static void threads_and_cores(void **state UNUSED)
{
    for (u32 id = 0; id < 64; id++) {
        begin(0x16);
        set_level(0xb, 0, 1, 1, id);
        set_level(0xb, 1, 2, 4, id);
        expect_place(id >> 4, id >> 1 & 7, id & 1);
    }
}

// Leaf 1FH, where it is, has more levels; ids of 32 bits.
static void dies_and_modules(void **state UNUSED)
{
    u32 id = 0x12345;
    begin(0x1f);
    set_level(0xb, 0, 1, 0, id); // not what counts
    set_level(0xb, 1, 2, 9, id);
    set_level(0x1f, 0, 1, 1, id);
    set_level(0x1f, 1, 2, 5, id);
    set_level(0x1f, 2, 3, 6, id); // module
    set_level(0x1f, 3, 5, 8, id); // die
    expect_place(0x123, 0x45 >> 1, 1);
}

// Leaf 1FH that is empty: leaf 0BH; if that is empty, too: leaves 1 and 4.
static void empty_leaves(void **state UNUSED)
{
    begin(0x1f);
    set_level(0xb, 0, 1, 1, 0x13);
    set_level(0xb, 1, 2, 3, 0x13);
    expect_place(2, 1, 1);
    begin(0x1f);
    set(1, 0, 0, 0x13u << 24 | 8 << 16, 0, 1u << 28);
    set(4, 0, 3u << 26 | 1, 0, 0, 0); // four cores
    expect_place(2, 1, 1);
}

static void older_processors(void **state UNUSED)
{
    lapic_id = 3;
    begin(2); // one core, one thread
    set(1, 0, 0, 3u << 24, 0, 0);
    expect_place(3, 0, 0);
    begin(2); // before the Pentium 4: leaf 1 has no id
    set(1, 0, 0, 0, 0, 0);
    expect_place(3, 0, 0);
    lapic_id = 0;
    begin(2); // two threads
    set(1, 0, 0, 3u << 24 | 2 << 16, 0, 1u << 28);
    expect_place(1, 0, 1);
    begin(1); // AMD: six cores
    set(1, 0, 0, 13u << 24 | 6 << 16, 0, 1u << 28);
    set(0x80000000, 0, 0x80000008, 0, 0, 0);
    set(0x80000008, 0, 0, 0, 5, 0);
    expect_place(1, 5, 0);
    begin(0); // no leaf 1
    expect_place(0, 0, 0);
}

static void kinds_of_cores(void **state UNUSED)
{
    static const struct {
        u32 features, kind;
        enum core_kind expected;
    } cases[] = {
        { 1u << 15, 0x40000001, CORE_PERFORMANCE },
        { 1u << 15, 0x20000001, CORE_EFFICIENCY },
        { 1u << 15, 0x10000001, CORE_ANY }, // reserved
        { 0, 0x40000001, CORE_ANY },        // not a hybrid one
    };
    for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
        for (u32 highest = 0x19; highest <= 0x1a; highest++) {
            begin(highest);
            set(7, 0, 0, 0, 0, cases[i].features);
            set(0x1a, 0, cases[i].kind, 0, 0, 0);
            assert_int_equal(read_topology().kind,
                             highest == 0x1a ? cases[i].expected : CORE_ANY);
        }
    }
}

static void set_caches(u32 leaf)
{
    set_cache(leaf, 0, 1, 1, 12, 64, 64);   // 48 KiB of data
    set_cache(leaf, 1, 2, 1, 8, 64, 64);    // 32 KiB of code
    set_cache(leaf, 2, 3, 2, 10, 64, 2048); // 1.25 MiB
    set_cache(leaf, 3, 3, 3, 12, 64, 40960);
}

static void expect_caches(void)
{
    struct topology t = read_topology();
    assert_int_equal(t.l1d, 48 << 10);
    assert_int_equal(t.l1i, 32 << 10);
    assert_int_equal(t.l2, 1280 << 10);
    assert_int_equal(t.l3, 30 << 20);
}

static void caches(void **state UNUSED)
{
    begin(0x16);
    set_caches(4);
    expect_caches();
    begin(0x10); // AMD: leaf 4 is empty
    set(0x80000000, 0, 0x8000001e, 0, 0, 0);
    set(0x80000001, 0, 0, 0, 1u << 22, 0);
    set_caches(0x8000001d);
    expect_caches();
    leaves[2].r[2] = 0; // without the feature the leaf means nothing
    assert_int_equal(read_topology().l2, 0);
    begin(3);
    assert_int_equal(read_topology().l1d, 0);
}

// The CPU gives random answers: the decoder ends, and its numbers form the id.
static void read_noise(u32 leaf, u32 subleaf, u32 registers[4])
{
    for (u32 i = 0; i < 4; i++)
        registers[i] = (u32)random_u64();
    if (!leaf && !subleaf)
        registers[0] = random_below(0x20);
}

static void noise(void **state UNUSED)
{
    for (u32 i = 0; i < 100000; i++) {
        struct topology t;
        topology_read(read_noise, 0, &t);
        assert_true(t.kind <= CORE_EFFICIENCY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_and_cores),
        cmocka_unit_test(dies_and_modules),
        cmocka_unit_test(empty_leaves),
        cmocka_unit_test(older_processors),
        cmocka_unit_test(kinds_of_cores),
        cmocka_unit_test(caches),
        cmocka_unit_test(noise),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
