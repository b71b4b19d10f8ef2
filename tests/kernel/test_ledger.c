// The ledger's sums. The cycles of an entry before its TSC reading, and of an
// exit after its own, are charged to the kernel in advance: no sum may decrease
// or lack time while they are.

#include "kernel/sched/thread.h"
#include "kernel/time/ledger.h"
#include "tests/kernel/test.h"

struct reading {
    u64 user, kernel;
    struct ledger_sums sums;
};

static struct reading read_all(void)
{
    struct reading r;
    thread_times(current, &r.user, &r.kernel);
    ledger_sums(this_cpu()->id, &r.sums);
    return r;
}

static void expect_after(const struct reading *now, const struct reading *last)
{
    const struct ledger_sums *s = &now->sums;
    expect(now->user >= last->user && now->kernel >= last->kernel);
    expect((s64)s->user >= 0 && s->user >= last->sums.user);
    expect(s->kernel >= last->sums.kernel && s->elapsed >= last->sums.elapsed);
    expect(s->user + s->kernel + s->irq + s->idle + s->start_up == s->elapsed);
}

// The advance charge, in cycles: the time of several readings. Doubled where
// readings take longer.
#define OUTSIDE 100000u

// For `outside` cycles the user time stands still. True if a reading saw this.
static bool charge_in_advance(struct ledger *l, u32 outside)
{
    bool standing = false;
    u64 began = rdtsc();
    struct reading last = read_all(), first = last;
    l->outside = outside;
    ledger_kernel_to_user(current);
    while (last.user < first.user + outside) {
        struct reading now = read_all();
        expect_after(&now, &last);
        standing |= now.user == first.user;
        last = now;
    }
    ledger_user_to_kernel(current);
    u64 ended = rdtsc();
    struct reading end = read_all();
    expect_after(&end, &last);
    expect(end.user - first.user <= ended - began - outside);
    expect(l->outside == outside);
    return standing;
}

// Enters the kernel at once. True if that was before the charged time was over.
static bool enter_early(struct ledger *l, u32 outside)
{
    struct reading first = read_all();
    u64 began = rdtsc();
    l->outside = outside;
    ledger_kernel_to_user(current);
    ledger_user_to_kernel(current);
    expect(rdtsc() - began >= outside);
    struct reading end = read_all();
    expect_after(&end, &first);
    expect(l->outside >= outside - outside / 8);
    return l->outside < outside;
}

// A kernel thread has no user time: moves it back to kernel time.
static void give_back(struct ledger *l, u64 user)
{
    ledger_write_begin();
    current->user -= user;
    l->in[l->subsystem] += user;
    ledger_write_end(l);
}

static void until_seen(bool (*seen)(struct ledger *l, u32 outside))
{
    u32 flags = irq_save(), outside = OUTSIDE;
    struct ledger *l = this_ledger();
    u32 was = l->outside;
    u64 user = current->user;
    while (!seen(l, outside))
        outside *= 2;
    l->outside = was;
    give_back(l, current->user - user);
    irq_restore(flags);
}

KERNEL_TEST(ledger_charges_in_advance)
{
    until_seen(charge_in_advance);
}

KERNEL_TEST(ledger_waits_for_what_was_charged)
{
    until_seen(enter_early);
}

// --- sums -------------------------------------------------------------------

KERNEL_TEST(ledger_counts_a_thread)
{
    u64 u0, k0, u1, k1;
    u32 flags = irq_save();
    u64 before = rdtsc();
    thread_times(current, &u0, &k0);
    for (u32 i = 0; i < 10000; i++)
        barrier();
    thread_times(current, &u1, &k1);
    u64 after = rdtsc();
    irq_restore(flags);
    expect(u0 == u1);
    expect(k1 > k0);
    expect(k1 - k0 <= after - before);
}

KERNEL_TEST(ledger_sums_to_elapsed)
{
    for (u32 cpu = 0; cpu < cpu_count; cpu++) {
        struct ledger_sums s;
        ledger_sums(cpu, &s);
        expect(s.user + s.kernel + s.irq + s.idle + s.start_up == s.elapsed);
        expect(s.elapsed > 0);
    }
}
