// The byte ring: bytes are read as written, in order. A writer that builds
// records in the ring notices in time that a quarter of it is full.
#include "test.h"

#include "lib/ring.h"

#include <pthread.h>
#include <sched.h>

#define SIZE 1024u
#define ROUNDS 200000u

static u8 memory[SIZE];

// The n-th byte written.
static u8 byte_of(u32 n)
{
    return (u8)(n * 37 + n / 256);
}

static void fill(u8 *at, u32 first, u32 n)
{
    for (u32 i = 0; i < n; i++)
        at[i] = byte_of(first + i);
}

static void expect_bytes(const struct ring *r, u32 n)
{
    u8 bytes[SIZE], expected[SIZE];
    ring_peek(r, 0, bytes, n);
    fill(expected, r->tail, n);
    assert_memory_equal(bytes, expected, n);
}

static bool write(struct ring *r, u32 n)
{
    u8 bytes[SIZE + 1];
    fill(bytes, r->head, n);
    return ring_write(r, bytes, n);
}

static void test_write_and_read(void **state UNUSED)
{
    struct ring r;
    ring_init(&r, memory, SIZE);
    r.head = r.tail = r.room_end = -3 * SIZE; // it wraps
    for (u32 i = 0; i < ROUNDS; i++) {
        u32 n = random_below(300);
        bool fits = n <= SIZE - ring_used(&r);
        assert_int_equal(write(&r, n), fits);
        n = MIN(random_below(300), ring_used(&r));
        expect_bytes(&r, n);
        ring_consume(&r, n);
    }
    assert_false(write(&r, SIZE - ring_used(&r) + 1));
    assert_true(write(&r, SIZE - ring_used(&r)));
    assert_int_equal(ring_fill(&r), SIZE);
}

// Builds a record of n bytes, at most `room`, in the ring.
static bool build(struct ring *r, u32 room, u32 n, bool *looked)
{
    *looked = !ring_has_room(r, room);
    if (*looked && !ring_check_room(r, room))
        return false;
    fill(ring_place(r), r->head, n);
    ring_commit(r, n);
    return true;
}

// Once a quarter is full, at least one of the next two records is built only
// after a call of ring_check_room.
static void test_a_quarter_is_noticed(void **state UNUSED)
{
    struct ring r;
    u32 room = 64;
    ring_init(&r, memory, SIZE);
    for (u32 i = 0; i < ROUNDS; i++) {
        bool looked, full = ring_used(&r) >= SIZE / 4 + room;
        u32 before = ring_used(&r);
        if (build(&r, room, 1 + random_below(room), &looked) && looked &&
            before >= SIZE / 4)
            ring_consume(&r, before); // it is read at once
        else
            assert_false(full && !looked);
    }
}

static void *writer(void *arg)
{
    struct ring *r = arg;
    for (u32 i = 0; i < ROUNDS;) {
        if (write(r, 1 + i % 100))
            i++;
        else
            sched_yield(); // to a reader on the same CPU
    }
    return NULL;
}

static void test_a_writer_and_a_reader(void **state UNUSED)
{
    struct ring r;
    pthread_t thread;
    u64 all = 0, read = 0;
    ring_init(&r, memory, SIZE);
    for (u32 i = 0; i < ROUNDS; i++)
        all += 1 + i % 100;
    assert_int_equal(pthread_create(&thread, NULL, writer, &r), 0);
    while (read < all) {
        u32 n = ring_used(&r);
        if (!n)
            sched_yield(); // to a writer on the same CPU
        expect_bytes(&r, n);
        ring_consume(&r, n);
        read += n;
    }
    pthread_join(thread, NULL);
    assert_int_equal(ring_used(&r), 0);
}

int main(void)
{
    random_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_and_read),
        cmocka_unit_test(test_a_quarter_is_noticed),
        cmocka_unit_test(test_a_writer_and_a_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
