// The price of a trace's records: how many pages may be filled in a time.
#include "arch/cpu.h"
#include "arch/irq.h"
#include "kernel/mm/frame.h"
#include "kernel/trace/record.h"
#include "tests/kernel/test.h"

#define TYPE 1u
#define PAGE_RECORDS ((TRACE_PAGE - sizeof(struct trace_time)) / 20)
#define PAGES 16u
#define PRICE 100000u               // TSC cycles
#define PACE (PAGE_RECORDS * PRICE) // of a page
#define BURST_PAGES 4u

static struct trace_ring *begin_ring(u32 price)
{
    static struct trace_ring ring;
    static bool wake;
    wake = false;
    expect(trace_ring_alloc(&ring, 2 * PAGES * PAGE_SIZE, &wake, true));
    trace_ring_throttle(&ring, price, BURST_PAGES * PAGE_RECORDS * price);
    return &ring;
}

// Puts what would fill PAGES pages, and returns how many were stored.
static u32 put_pages(struct trace_ring *r)
{
    u32 flags = irq_save(), stored = 0;
    for (u32 i = 0; i < PAGES * PAGE_RECORDS; i++)
        stored += trace_put(r, TYPE, (u32[4]){ 0 }, 16);
    irq_restore(flags);
    return stored;
}

// The same, at a price: there is always room, so what is lost is throttled. The
// time that it takes decides how many pages it may be, beside those at once.
static void put_at_price(struct trace_ring *r)
{
    u32 opened = r->shared->opened, lost = trace_ring_lost(r);
    u64 began = rdtsc();
    u32 stored = put_pages(r);
    u32 most = BURST_PAGES + 2 + (u32)((rdtsc() - began) / PACE);
    opened = r->shared->opened - opened;
    lost = trace_ring_lost(r) - lost;
    expect(opened >= BURST_PAGES && opened <= most);
    expect(stored + lost == PAGES * PAGE_RECORDS);
    expect(lost || most >= PAGES);
    expect(trace_ring_throttled(r) == trace_ring_lost(r));
}

KERNEL_TEST(trace_writers_are_throttled)
{
    struct trace_ring *r = begin_ring(PRICE);
    put_at_price(r);
    for (u64 began = rdtsc(); rdtsc() - began < BURST_PAGES * PACE;)
        cpu_relax();
    put_at_price(r);
    trace_ring_free(r);
}

KERNEL_TEST(trace_writers_without_a_price_write_all)
{
    struct trace_ring *r = begin_ring(0);
    expect(put_pages(r) == PAGES * PAGE_RECORDS);
    expect(!trace_ring_lost(r) && !trace_ring_throttled(r));
    trace_ring_free(r);
}
