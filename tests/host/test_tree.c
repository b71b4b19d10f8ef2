// lib/tree.c against an array: the order, the balance and the summaries, after
// each insertion, removal and change of a random sequence.
#include "test.h"

#include "lib/tree.h"

#define NODES 300u
#define ROUNDS 20000u

struct item {
    struct tree_node node;
    u32 value, largest; // of the subtree
};

static struct item items[NODES];
static struct item *order[NODES]; // the nodes of the tree, in order
static u32 count;
static u32 summaries;

static struct item *item_of(struct tree_node *n)
{
    return (struct item *)n; // the first member
}

static u32 largest(struct tree_node *n)
{
    return n ? item_of(n)->largest : 0;
}

static bool summarize(struct tree_node *n)
{
    struct item *i = item_of(n);
    u32 old = i->largest;
    i->largest = MAX(i->value, MAX(largest(n->child[TREE_LEFT]),
                                   largest(n->child[TREE_RIGHT])));
    summaries++;
    return i->largest != old;
}

static struct tree tree = { .summarize = summarize };

// Returns the height; *place counts the nodes to the left.
static u32 check_subtree(struct tree_node *n, struct tree_node *parent,
                         u32 *place)
{
    if (!n)
        return 0;
    assert_ptr_equal(n->parent, parent);
    u32 left = check_subtree(n->child[TREE_LEFT], n, place);
    assert_true(*place < count);
    assert_ptr_equal(item_of(n), order[(*place)++]);
    u32 right = check_subtree(n->child[TREE_RIGHT], n, place);
    assert_true(left <= right + 1 && right <= left + 1);
    assert_int_equal(n->height, 1 + MAX(left, right));
    u32 most = MAX(largest(n->child[TREE_LEFT]), largest(n->child[TREE_RIGHT]));
    assert_int_equal(largest(n), MAX(item_of(n)->value, most));
    return n->height;
}

static void check(void)
{
    u32 place = 0;
    check_subtree(tree.root, NULL, &place);
    assert_int_equal(place, count);
}

static void insert(struct item *i, u32 place)
{
    struct item *before = place ? order[place - 1] : NULL;
    struct item *after = place < count ? order[place] : NULL;
    memmove(&order[place + 1], &order[place], (count - place) * sizeof(*order));
    order[place] = i;
    count++;
    tree_insert(&tree, &i->node, before ? &before->node : NULL,
                after ? &after->node : NULL);
}

static struct item *remove_at(u32 place)
{
    struct item *i = order[place];
    count--;
    memmove(&order[place], &order[place + 1], (count - place) * sizeof(*order));
    tree_remove(&tree, &i->node);
    return i;
}

static void empty(void)
{
    while (count)
        remove_at(count - 1);
    assert_null(tree.root);
}

static void test_against_an_array(void **state UNUSED)
{
    struct item *spare[NODES];
    u32 spares = NODES;
    for (u32 i = 0; i < NODES; i++)
        spare[i] = &items[i];
    for (u32 round = 0; round < ROUNDS; round++) {
        // Phases of growth and of shrinking.
        u32 grow = round / 1000 % 2 ? 3 : 6, draw = random_below(10);
        if (draw < grow && spares) {
            struct item *i = spare[--spares];
            i->value = random_below(1000);
            insert(i, random_below(count + 1));
        } else if (draw < 9 && count) {
            spare[spares++] = remove_at(random_below(count));
        } else if (count) {
            struct item *i = order[random_below(count)];
            i->value = random_below(1000);
            tree_changed(&tree, &i->node);
        }
        check();
    }
    empty();
}

// Insertion in order keeps the tree balanced.
static void test_in_order(void **state UNUSED)
{
    for (u32 i = 0; i < NODES; i++) {
        insert(&items[i], count);
        check();
    }
    assert_true(tree.root->height <= 12); // 1.44 * log2(301)
    while (count) {
        remove_at(0);
        check();
    }
    for (u32 i = 0; i < NODES; i++)
        insert(&items[i], 0);
    check();
    assert_true(tree.root->height <= 12);
    empty();
}

// A change that alters no summary takes one step, not the whole way up.
static void test_stops_early(void **state UNUSED)
{
    for (u32 i = 0; i < NODES; i++) {
        items[i].value = 7;
        insert(&items[i], count);
    }
    summaries = 0;
    tree_changed(&tree, &order[0]->node);
    assert_int_equal(summaries, 1);
    empty();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_an_array),
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_stops_early),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
