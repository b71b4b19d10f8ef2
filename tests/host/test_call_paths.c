// Traces of calls: records merged by path, tracing's part removed, and the file
// that holds them.
//
// link: user/libprofile/call_paths.c user/libprofile/calls_file.c
#include "test.h"

#include "user/libprofile/call_paths.h"
#include "user/libprofile/calls_file.h"

#define A 0xc0101000u
#define B 0xc0102000u
#define C 0xc0103000u

// threads -> A -> B -> A, and C on another CPU, where A was called, too.
static const struct calls_node records[] = {
    { .function = CALLS_ROOT_THREADS, .parent = 0, .own = 1000 },
    { .function = A,
      .parent = 0,
      .calls = 10,
      .own = 500,
      .tracing = 7,
      .longest = 90,
      .shortest = 20 },
    { .function = B,
      .parent = 1,
      .calls = 20,
      .own = 300,
      .blocked = 40,
      .longest = 50,
      .shortest = 5,
      .open = 1 },
    { .function = A,
      .parent = 2,
      .calls = 2,
      .own = 60,
      .longest = 30,
      .shortest = 30 },
    { .function = CALLS_ROOT_THREADS, .parent = 4, .cpu = 1, .own = 100 },
    { .function = A,
      .parent = 4,
      .cpu = 1,
      .calls = 1,
      .own = 95,
      .interrupted = 11,
      .longest = 95,
      .shortest = 95 },
    { .function = C,
      .parent = 5,
      .cpu = 1,
      .calls = 1,
      .own = 3,
      .open = 1,
      .shortest = UINT32_MAX },
};

static struct calls_info info(uint32_t caller, uint32_t own)
{
    return (struct calls_info){ .state = CALLS_RUNNING,
                                .mode = CALLS_PATHS,
                                .records = ARRAY_SIZE(records),
                                .outside_caller = caller,
                                .outside_own = own };
}

static const struct call_path *find(const struct call_paths *p, uint32_t parent,
                                    uint32_t function)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->list[i].function == function && p->list[i].parent == parent)
            return &p->list[i];
    }
    fail_msg("no %x below %u", function, parent);
    return NULL;
}

static void merges_by_path(void **state UNUSED)
{
    struct calls_info i = info(0, 0);
    struct call_paths p;

    assert_null(call_paths_merge(&p, &i, records, -1));
    assert_int_equal(p.count, 5);
    const struct call_path *root = find(&p, 0, CALLS_ROOT_THREADS);
    const struct call_path *a = find(&p, 0, A);
    const struct call_path *b = find(&p, a - p.list, B);
    assert_int_equal(root->own, 1100);
    assert_int_equal(a->calls, 11);
    assert_int_equal(a->own, 595);
    assert_int_equal(a->interrupted, 11);
    assert_int_equal(a->longest, 95);
    assert_int_equal(a->shortest, 20);
    assert_int_equal(a->depth, 1);
    assert_int_equal(b->open, 1);
    assert_int_equal(b->blocked, 40);
    assert_int_equal(b->total, 360);
    assert_int_equal(a->total, 595 + 360 + 3);
    assert_int_equal(root->total, 1100 + 595 + 360 + 3);
    assert_true(find(&p, a - p.list, C)->shortest == UINT64_MAX);
    assert_int_equal(find(&p, b - p.list, A)->depth, 3);
    call_paths_free(&p);
}

static void takes_one_cpu(void **state UNUSED)
{
    struct calls_info i = info(0, 0);
    struct call_paths p;

    assert_null(call_paths_merge(&p, &i, records, 1));
    assert_int_equal(p.count, 3);
    assert_int_equal(find(&p, 0, A)->own, 95);
    call_paths_free(&p);
}

static void removes_what_tracing_took(void **state UNUSED)
{
    struct calls_info i = info(3, 2);
    struct call_paths p;
    uint64_t all = 0;

    assert_null(call_paths_merge(&p, &i, records, -1));
    const struct call_path *root = find(&p, 0, CALLS_ROOT_THREADS);
    const struct call_path *a = find(&p, 0, A);
    const struct call_path *b = find(&p, a - p.list, B);
    const struct call_path *c = find(&p, a - p.list, C);
    assert_int_equal(root->own, 1100 - 11 * 3);
    assert_int_equal(root->tracing, 11 * 3);
    assert_int_equal(a->own, 595 - 11 * 2 - (20 + 1) * 3);
    assert_int_equal(a->tracing, 7 + 11 * 2 + (20 + 1) * 3);
    assert_int_equal(b->own, 300 - 20 * 2 - 2 * 3);
    assert_int_equal(c->own, 1);
    for (uint32_t k = 0; k < p.count; k++)
        all += p.list[k].own + p.list[k].tracing;
    assert_int_equal(all, 1100 + 595 + 300 + 60 + 3 + 7); // nothing is lost
    call_paths_free(&p);
    i = info(0, 50); // more than there is: never below 0
    assert_null(call_paths_merge(&p, &i, records, -1));
    assert_int_equal(find(&p, 1, C)->own, 0);
    assert_int_equal(find(&p, 1, C)->tracing, 3);
    call_paths_free(&p);
}

static void lists_functions(void **state UNUSED)
{
    struct calls_info i = info(0, 0);
    struct call_paths p;

    assert_null(call_paths_merge(&p, &i, records, -1));
    struct call_paths f = call_functions(&p);
    assert_int_equal(f.count, 3);
    const struct call_path *a = &f.list[call_functions_find(&f, A)];
    assert_int_equal(a->function, A);
    assert_int_equal(a->calls, 13);
    assert_int_equal(a->own, 655);
    assert_int_equal(a->total, 595 + 360 + 3); // the inner A is in it
    assert_int_equal(f.list[call_functions_find(&f, B)].total, 360);
    assert_int_equal(f.list[call_functions_find(&f, C)].open, 1);
    assert_true(call_functions_find(&f, C + 1) == CALL_PATH_NONE);
    call_paths_free(&f);
    call_paths_free(&p);
}

static void assert_refused(uint32_t at, struct calls_node node)
{
    struct calls_node bad[ARRAY_SIZE(records)];
    struct calls_info i = info(0, 0);
    struct call_paths p;

    memcpy(bad, records, sizeof(bad));
    bad[at] = node;
    assert_non_null(call_paths_merge(&p, &i, bad, -1));
    assert_null(p.list);
}

static void refuses_records_that_are_no_tree(void **state UNUSED)
{
    assert_refused(1, (struct calls_node){ .function = A, .parent = 1 });
    assert_refused(1, (struct calls_node){ .function = A, .parent = 2 });
    assert_refused(1, (struct calls_node){ .function = A, .parent = 1u << 31 });
    assert_refused(5,
                   (struct calls_node){ .function = A, .parent = 0, .cpu = 1 });
    assert_refused(1, (struct calls_node){ .function = CALLS_ROOT_IDLE });
}

static void merges_arcs(void **state UNUSED)
{
    static const struct calls_arc arcs[] = {
        { .from = B, .to = A, .count = 3 },
        { .from = A, .to = B, .count = 4 },
        { .from = B, .to = A, .count = 1ull << 40, .cpu = 1 },
    };
    struct calls_info i = { .mode = CALLS_ARCS, .records = 3 };
    uint32_t count;
    struct calls_arc *list = call_arcs_merge(&i, arcs, -1, &count);

    assert_int_equal(count, 2);
    assert_int_equal(list[0].from, A);
    assert_true(list[1].count == (1ull << 40) + 3);
    free(list);
    list = call_arcs_merge(&i, arcs, 1, &count);
    assert_int_equal(count, 1);
    free(list);
}

// --- the file ---------------------------------------------------------------

struct whole {
    struct calls_file_header header;
    struct calls_node nodes[ARRAY_SIZE(records)];
};

static struct whole whole(void)
{
    struct whole w = { .header = { .info = info(1, 2),
                                   .build_id_size = 20,
                                   .command = "cprofile ls" } };
    memcpy(w.nodes, records, sizeof(records));
    calls_file_seal(&w.header, w.nodes);
    return w;
}

static void reads_its_file(void **state UNUSED)
{
    struct whole w = whole();
    struct calls_file f;

    assert_true(calls_file_is(&w, sizeof(w)));
    assert_null(calls_file_read(&f, &w, sizeof(w)));
    assert_string_equal(f.header.command, "cprofile ls");
    assert_memory_equal(f.nodes, records, sizeof(records));
    assert_null(f.arcs);
}

static void refuses_every_cut_and_every_change(void **state UNUSED)
{
    struct whole w = whole();
    struct calls_file f;

    for (size_t size = 0; size < sizeof(w); size++)
        assert_non_null(calls_file_read(&f, &w, size));
    for (size_t at = 0; at < sizeof(w); at++) {
        ((uint8_t *)&w)[at] ^= 1 << at % 8;
        assert_non_null(calls_file_read(&f, &w, sizeof(w)));
        ((uint8_t *)&w)[at] ^= 1 << at % 8;
    }
    assert_null(calls_file_read(&f, &w, sizeof(w)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_by_path),
        cmocka_unit_test(takes_one_cpu),
        cmocka_unit_test(removes_what_tracing_took),
        cmocka_unit_test(lists_functions),
        cmocka_unit_test(refuses_records_that_are_no_tree),
        cmocka_unit_test(merges_arcs),
        cmocka_unit_test(reads_its_file),
        cmocka_unit_test(refuses_every_cut_and_every_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
