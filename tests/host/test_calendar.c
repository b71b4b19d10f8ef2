// lib/calendar.c against a plain array: order of times, insertion order of
// equal times, and removal of any event.
#include "test.h"

#include "lib/calendar.h"

#define EVENTS 400

struct model {
    struct calendar_event event;
    bool queued;
    u64 key; // its time
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

// Not after the first event; possibly before it, if an earlier one was removed.
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

// Times from 0 to 2^57 ns ahead.
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

// An event inserted after its time is due at once, after events already due.
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

// Of two events the first is removed: the time of the second is exact.
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
        // Every eighth event is earlier, so that the others are filed again.
        put_in(&model[i], i % 8 == 7 ? at - (1ull << (i / 8)) : at);
    }
    now = at;
    take_due(); // checks the order
    assert_null(first());
}

// Each call at the time of `calendar_next` makes progress: the next event is
// found after at most CALENDAR_PAGES calls.
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
