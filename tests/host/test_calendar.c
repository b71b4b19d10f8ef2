// lib/calendar.c against a plain array: order, equals in order, removal of any.
#include "test.h"

#include "lib/calendar.h"

#define EVENTS 400

struct model {
    struct calendar_event event;
    bool queued;
    u64 key; // when it is due: its time, or when it was put in too late
    u32 turn;
};

static struct calendar *calendar;
static struct model model[EVENTS];
static u64 now;
static u32 turn;

static struct model *first(void)
{
    struct model *min = NULL;
    for (u32 i = 0; i < EVENTS; i++) {
        struct model *m = &model[i];
        if (m->queued && (min == NULL || m->key < min->key ||
                          (m->key == min->key && m->turn < min->turn)))
            min = m;
    }
    return min;
}

static void put_in(struct model *m, u64 at)
{
    calendar_insert(calendar, &m->event, at);
    assert_true(m->event.at == at);
    m->queued = true;
    m->key = at;
    m->turn = turn++;
}

// Not after the first event; not always at it, when one before was removed.
static void check_next(void)
{
    const struct model *m = first();
    u64 next = calendar_next(calendar);
    assert_true(m == NULL ? next == CALENDAR_NEVER : next <= m->key);
}

static void take_due(void)
{
    struct calendar_event *e;
    while ((e = calendar_take(calendar, now)) != NULL) {
        struct model *m = container_of(e, struct model, event);
        assert_ptr_equal(m, first());
        assert_true(m->key <= now);
        m->queued = false;
    }
    assert_true(first() == NULL || first()->key > now);
    assert_true(calendar_next(calendar) > now);
    check_next();
}

static int set_up(void **state UNUSED)
{
    calendar = calloc(1, sizeof(*calendar));
    memset(model, 0, sizeof(model));
    now = 0;
    return 0;
}

static int tear_down(void **state UNUSED)
{
    free(calendar);
    return 0;
}

// Spreads of every width, from all at once to centuries.
static void random_operations(void **state UNUSED)
{
    for (int i = 0; i < 300000; i++) {
        struct model *m = &model[random_below(EVENTS)];
        u64 spread = (1ull << random_below(i % 50000 < 25000 ? 12 : 58)) - 1;
        u32 what = random_below(16);
        if (what == 0) {
            now += random_u64() & ((1ull << random_below(40)) - 1);
            take_due();
        } else if (what == 1 && calendar_next(calendar) < 1ull << 60) {
            now = MAX(now, calendar_next(calendar));
            take_due();
        } else if (m->queued) {
            calendar_remove(calendar, &m->event);
            m->queued = false;
            check_next();
        } else {
            put_in(m, now + (random_u64() & spread));
        }
    }
    now = UINT64_MAX - 1;
    take_due();
    assert_null(first());
}

// An event put in after its time is due at once, after those that were due.
static void times_that_are_over(void **state UNUSED)
{
    put_in(&model[0], 1000);
    now = 1000;
    take_due();
    put_in(&model[1], 1000);
    put_in(&model[2], 3);
    put_in(&model[3], 1001);
    assert_ptr_equal(calendar_take(calendar, 1000), &model[1].event);
    assert_ptr_equal(calendar_take(calendar, 1000), &model[2].event);
    assert_null(calendar_take(calendar, 1000));
    assert_true(calendar_next(calendar) == 1001);
}

// The last but one is removed: the time of the one that is left is known.
static void next_after_removal(void **state UNUSED)
{
    put_in(&model[0], 5000000000);
    put_in(&model[1], 5000000007);
    calendar_remove(calendar, &model[0].event);
    assert_true(calendar_next(calendar) == 5000000007);
    calendar_remove(calendar, &model[1].event);
    assert_true(calendar_next(calendar) == CALENDAR_NEVER);
}

static void equals_in_order(void **state UNUSED)
{
    u64 at = 0x123456789abcdef;
    for (u32 i = 0; i < EVENTS; i++) {
        // One before it, so that the events are filed again in between.
        put_in(&model[i], i % 8 == 7 ? at - (1ull << (i / 8)) : at);
    }
    now = at;
    take_due(); // checks the order
    assert_null(first());
}

// A look at the hour that `calendar_next` names always makes progress: there
// are at most as many looks in vain as there are pages.
static void few_looks_in_vain(void **state UNUSED)
{
    for (int round = 0; round < 1000; round++) {
        for (u32 i = 0; i < 3; i++)
            put_in(&model[i], now + 1 + random_below(1u << 30));
        for (u32 i = 0; i < 2; i++) {
            struct model *m = first();
            calendar_remove(calendar, &m->event);
            m->queued = false;
        }
        u32 looks = 0;
        while (first() != NULL) {
            now = calendar_next(calendar);
            take_due();
            assert_true(++looks <= CALENDAR_PAGES);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_operations, set_up, tear_down),
        cmocka_unit_test_setup_teardown(times_that_are_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(next_after_removal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(equals_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(few_looks_in_vain, set_up, tear_down),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
