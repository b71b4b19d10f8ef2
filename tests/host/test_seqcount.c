// lib/seqcount.h, and lib/counter.h, which is built on it: a reader gets
// consistent data during concurrent changes.
#include "test.h"

#include <pthread.h>

#include "lib/counter.h"
#include "lib/seqcount.h"

// --- without concurrency ----------------------------------------------------

static void test_a_change(void **state)
{
    (void)state;
    struct seqcount s = { 0 };
    u32 before = seqcount_read_begin(&s);
    assert_false(seqcount_read_retry(&s, before));
    assert_false(seqcount_is_changing(&s));

    seqcount_write_begin(&s);
    assert_true(seqcount_is_changing(&s));
    assert_int_equal(seqcount_peek(&s) & 1, 1);
    assert_true(seqcount_read_retry(&s, before)); // half changed
    seqcount_write_end(&s);

    assert_false(seqcount_is_changing(&s));
    assert_true(seqcount_read_retry(&s, before)); // completely changed
    assert_false(seqcount_read_retry(&s, seqcount_read_begin(&s)));

    before = seqcount_read_begin(&s);
    seqcount_write_begin_full(&s);
    assert_true(seqcount_is_changing(&s) && seqcount_read_retry(&s, before));
    seqcount_write_end(&s);
}

// A change by an NMI, between a reader's begin and retry.
static void test_a_change_in_between(void **state)
{
    (void)state;
    struct seqcount s = { ~0u - 1 }; // it wraps
    u32 before = seqcount_read_begin(&s);
    seqcount_write_begin_full(&s);
    seqcount_write_end(&s);
    assert_int_equal(seqcount_peek(&s), 0);
    assert_true(seqcount_read_retry(&s, before));
}

static void test_each_writer_is_waited_for_once(void **state)
{
    (void)state;
    struct seqcount s = { 0 };
    seqcount_writer_done(&s); // returns: no writer
}

static void test_a_counter_s_overflows(void **state)
{
    (void)state;
    struct counter c = { 0 };
    u64 sum = 0;
    for (u32 i = 0; i < 1000; i++) {
        u32 n = random_below(4) ? random_u64() : random_below(3);
        counter_add(&c, n);
        sum += n;
        assert_true(counter_read(&c) == sum);
    }
    assert_true(sum >> 32 > 100);
}

// --- with concurrency -------------------------------------------------------

// About 0.1 s: two CPUs collide often.
#define CHANGES 20000000u

static struct shared {
    struct seqcount seq;
    u32 a, b, c;
    bool begun, over;
} shared;

static void *change(void *arg)
{
    struct shared *s = arg;
    for (u32 i = 1; i <= CHANGES; i++) {
        seqcount_write_begin(&s->seq);
        WRITE_ONCE(s->a, i);
        WRITE_ONCE(s->b, ~i);
        WRITE_ONCE(s->c, i * 3);
        seqcount_write_end(&s->seq);
    }
    __atomic_store_n(&s->over, true, __ATOMIC_RELEASE);
    return NULL;
}

static void test_a_reader_gets_all_of_a_change(void **state)
{
    (void)state;
    pthread_t writer;
    u32 last = 0;
    bool over = false;
    shared = (struct shared){ .b = ~0u };
    assert_int_equal(pthread_create(&writer, NULL, change, &shared), 0);
    while (!over) {
        u32 seq, a, b, c;
        over = __atomic_load_n(&shared.over, __ATOMIC_ACQUIRE);
        do {
            seq = seqcount_read_begin(&shared.seq);
            a = READ_ONCE(shared.a);
            b = READ_ONCE(shared.b);
            c = READ_ONCE(shared.c);
        } while (seqcount_read_retry(&shared.seq, seq));
        assert_int_equal(b, ~a);
        assert_int_equal(c, a * 3);
        assert_int_equal(seq / 2, a); // `seq` is that of the change
        assert_true(a >= last);
        last = a;
    }
    assert_int_equal(last, CHANGES);
    pthread_join(writer, NULL);
}

static void *wait_and_read(void *arg)
{
    struct shared *s = arg;
    __atomic_store_n(&s->begun, true, __ATOMIC_RELEASE);
    seqcount_writer_done(&s->seq);
    u32 done = READ_ONCE(s->a);
    return (void *)(uintptr_t)done;
}

static void *begin_and_read(void *arg)
{
    struct shared *s = arg;
    __atomic_store_n(&s->begun, true, __ATOMIC_RELEASE);
    seqcount_read_begin(&s->seq);
    return (void *)(uintptr_t)READ_ONCE(s->a);
}

static void end_of(void *(*read_after)(void *))
{
    pthread_t reader;
    void *read;
    shared = (struct shared){ 0 };
    seqcount_write_begin(&shared.seq);
    assert_int_equal(pthread_create(&reader, NULL, read_after, &shared), 0);
    while (!__atomic_load_n(&shared.begun, __ATOMIC_ACQUIRE))
        cpu_relax();
    for (u32 i = 0; i < 100000; i++)
        cpu_relax();
    WRITE_ONCE(shared.a, 42);
    seqcount_write_end(&shared.seq);
    pthread_join(reader, &read);
    assert_int_equal((uintptr_t)read, 42);
}

static void test_who_waits_for_the_end(void **state)
{
    (void)state;
    end_of(wait_and_read);
    end_of(begin_and_read);
}

#define STEP ~0u // every addition but the first overflows

static void *count(void *arg)
{
    for (u32 i = 0; i < CHANGES; i++)
        counter_add(arg, STEP);
    return NULL;
}

static void test_a_counter_is_never_torn(void **state)
{
    (void)state;
    static struct counter c;
    pthread_t writer;
    u64 last = 0, end = (u64)CHANGES * STEP;
    assert_int_equal(pthread_create(&writer, NULL, count, &c), 0);
    while (last != end) {
        u64 now = counter_read(&c);
        assert_true(now >= last && now <= end && now % STEP == 0);
        last = now;
    }
    pthread_join(writer, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_change),
        cmocka_unit_test(test_a_change_in_between),
        cmocka_unit_test(test_each_writer_is_waited_for_once),
        cmocka_unit_test(test_a_counter_s_overflows),
        cmocka_unit_test(test_a_reader_gets_all_of_a_change),
        cmocka_unit_test(test_who_waits_for_the_end),
        cmocka_unit_test(test_a_counter_is_never_torn),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
