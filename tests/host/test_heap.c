// lib/heap.c against a plain array.
#include "test.h"

#include "lib/heap.h"

#define NODES 500

static struct heap heap;
static struct heap_node nodes[NODES];

static const struct heap_node *least(void)
{
    const struct heap_node *min = NULL;
    for (u32 i = 0; i < NODES; i++) {
        if (nodes[i].queued && (min == NULL || nodes[i].key < min->key))
            min = &nodes[i];
    }
    return min;
}

static void check_minimum(void)
{
    const struct heap_node *min = least(), *found = heap_min(&heap);
    assert_int_equal(min == NULL, found == NULL);
    if (min != NULL) {
        assert_true(found->queued);
        assert_true(found->key == min->key);
    }
}

// Any node may be removed, not only the least.
static void random_operations(void **state UNUSED)
{
    for (int i = 0; i < 200000; i++) {
        struct heap_node *n = &nodes[random_below(NODES)];
        u32 keys = i % 20000 < 10000 ? 50 : UINT32_MAX; // with and without ties
        if (n->queued)
            heap_remove(&heap, n);
        else
            heap_insert(&heap, n, random_below(keys));
        if (i % 16 == 0)
            check_minimum();
    }
    while (heap_min(&heap) != NULL) {
        check_minimum();
        heap_remove(&heap, heap_min(&heap));
    }
    assert_null(least());
}

// A million nodes in a row of one order: no recursion, so no stack runs out.
static void sorted_input(void **state UNUSED)
{
    enum { MANY = 1000000 };
    struct heap_node *many = calloc(MANY, sizeof(*many));
    struct heap h = { NULL };

    for (u32 i = 0; i < MANY; i++)
        heap_insert(&h, &many[i], i);
    for (u32 i = 0; i < MANY; i++) {
        assert_ptr_equal(heap_min(&h), &many[i]);
        heap_remove(&h, &many[i]);
    }
    assert_null(heap_min(&h));
    free(many);
}

static void keys_of_64_bits(void **state UNUSED)
{
    struct heap h = { NULL };
    struct heap_node n[3];
    heap_insert(&h, &n[0], 1ull << 32);
    heap_insert(&h, &n[1], UINT64_MAX);
    heap_insert(&h, &n[2], 0xffffffff);
    assert_ptr_equal(heap_min(&h), &n[2]);
    heap_remove(&h, &n[2]);
    assert_ptr_equal(heap_min(&h), &n[0]);
    assert_false(n[2].queued);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations),
        cmocka_unit_test(sorted_input),
        cmocka_unit_test(keys_of_64_bits),
    };
    random_init();
    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
