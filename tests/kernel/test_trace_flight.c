// Flights: the ring of a trace that keeps its last records.
#include "kernel/mm/heap.h"
#include "kernel/trace/record.h"
#include "tests/kernel/thread_helpers.h"

#define RING_BYTES (4 * PAGE_SIZE)
#define TYPE 1u
#define ROUNDS 5000u // ten times what fits

// Records with ascending numbers.
struct kept {
    u32 first, next, count, gaps;
};

static void put(struct trace_ring *r, u32 from, u32 to)
{
    u32 flags = irq_save();
    for (u32 i = from; i < to; i++)
        expect(trace_put(r, TYPE, (u32[4]){ i }, 16));
    irq_restore(flags);
}

static void see(struct kept *k, const u8 *at, u32 bytes)
{
    for (u32 words; bytes; at += words * 4, bytes -= words * 4) {
        const u32 *record = (const u32 *)at;
        words = TRACE_HEAD_WORDS(*record);
        if (TRACE_HEAD_TYPE(*record) != TYPE)
            continue;
        if (!k->count++)
            k->first = record[1];
        else
            k->gaps += record[1] != k->next;
        k->next = record[1] + 1;
    }
}

static void read_all(struct kept *k, struct trace_ring *r)
{
    u32 bytes;
    *k = (struct kept){ 0 };
    for (;;) {
        const u8 *at = trace_ring_peek(r, PAGE_SIZE, &bytes);
        if (!bytes)
            return;
        see(k, at, bytes);
        trace_ring_consume(r, bytes);
    }
}

static struct trace_ring *begin_flight(void)
{
    static struct trace_ring ring;
    static bool wake;
    wake = false;
    expect(trace_ring_alloc(&ring, RING_BYTES, &wake, true));
    return &ring;
}

KERNEL_TEST(trace_flight_keeps_the_last)
{
    struct trace_ring *r = begin_flight();
    struct kept k;
    put(r, 0, ROUNDS);
    expect(!trace_ring_lost(r) && !*r->wake);
    expect(trace_ring_keep(r, 0));
    read_all(&k, r);
    expect(k.next == ROUNDS && !k.gaps);
    expect(k.count + r->overwritten == ROUNDS && k.first == r->overwritten);
    expect(k.count > 3 * (PAGE_SIZE / 20 - 2) && r->recorded == k.count);
    trace_ring_free(r);
}

KERNEL_TEST(trace_flight_drops_what_is_old)
{
    struct trace_ring *r = begin_flight();
    struct kept k;
    u32 page = PAGE_SIZE / 20;
    put(r, 0, 3 * page);
    expect(!trace_ring_keep(r, 0) && !r->overwritten); // nothing is that old
    u64 time = trace_page_time(r->bytes + PAGE_SIZE);
    expect(trace_ring_keep(r, time - 1) == 0);
    expect(trace_ring_keep(r, time) == time);
    read_all(&k, r);
    expect(k.first == r->overwritten && k.first > page - 3 && k.first <= page);
    expect(k.next == 3 * page && !k.gaps);
    trace_ring_free(r);
}

// The rest of the ring is written beside it.
KERNEL_TEST(trace_flight_is_copied)
{
    struct trace_ring *r = begin_flight();
    struct kept k = { 0 };
    u8 *room = kmalloc(PAGE_SIZE);
    expect(room);
    put(r, 0, ROUNDS);
    u32 from = r->shared->freed, end = r->shared->opened;
    for (u32 n = from; n != end; n++) {
        u32 bytes = trace_ring_copy(r, n, room);
        see(&k, room, bytes);
    }
    expect(k.next == ROUNDS && !k.gaps && k.first == r->overwritten);
    put(r, ROUNDS, 2 * ROUNDS);
    for (u32 n = from; n != end; n++)
        expect(!trace_ring_copy(r, n, room)); // overwritten
    kfree(room);
    trace_ring_free(r);
}

// A writer that is interrupted keeps its place until it has filled it.
KERNEL_TEST(trace_flight_waits_for_records_that_are_begun)
{
    struct trace_ring *r = begin_flight();
    struct kept k;
    put(r, 0, 10);
    u32 *slow = (u32 *)(r->bytes + sizeof(struct trace_time)), head = *slow;
    *slow = 0; // not published yet
    u32 flags = irq_save(), n = 10, lost = 0;
    while (lost < 5) {
        if (trace_put(r, TYPE, (u32[4]){ n }, 16))
            n++;
        else
            lost++;
    }
    expect(!r->overwritten && trace_ring_lost(r) == 5);
    *slow = head;
    expect(trace_put(r, TYPE, (u32[4]){ n++ }, 16));
    irq_restore(flags);
    read_all(&k, r);
    expect(r->overwritten && k.next == n && !k.gaps);
    trace_ring_free(r);
}

// Of a ring's first page: the TIME records directly before the record with this
// number. Those of this thread only.
static u32 times_before(const struct trace_ring *r, u32 number)
{
    u32 times = 0, words;
    for (const u32 *at = (const u32 *)r->bytes; *at; at += words) {
        const struct trace_time *t = (const struct trace_time *)at;
        words = TRACE_HEAD_WORDS(*at);
        if (TRACE_HEAD_TYPE(*at) == TRACE_R_TIME && t->thread == current->tid)
            times++;
        else if (TRACE_HEAD_TYPE(*at) == TYPE && at[1] == number)
            return times;
        else
            times = 0;
    }
    return 0;
}

// However many threads came before the next record.
KERNEL_TEST(trace_record_of_another_thread_is_told)
{
    struct trace_ring *r = begin_flight();
    u32 flags = irq_save();
    put(r, 0, 2);
    for (u32 i = 0; i < 100; i++)
        trace_ring_thread_changed(r);
    put(r, 2, 4);
    irq_restore(flags);
    expect(times_before(r, 0) == 1 && times_before(r, 2) == 1);
    trace_ring_free(r);
}
