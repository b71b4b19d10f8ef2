#include "kernel/time/ledger.h"

#include "arch/trap.h"
#include "lib/cpu_memory.h"

static struct ledger *ledgers[CPU_MAX];
CPU_MEMORY(ledgers, 1);
// `seq` is odd as during a switch. `open` is neither a thread's account nor the
// NULL of a thread that does not exist yet: exceptions may occur before it
// does.
struct ledger ledger_none = { .seq = { 1 }, .open = &ledger_none.start_up };

void ledger_init_cpu(struct cpu *cpu)
{
    struct ledger *l = ledgers[cpu->id];
    l->began = rdtsc();
    l->start_up.cycles = -l->began;
    l->open = &l->start_up;
    l->subsystem = IN_SCHEDULING; // of the idle thread, which begins next
    cpu->ledger = l;
}

u32 ledger_freezes; // ledger_nmi.h

void ledger_freeze(void)
{
    assert(ledger_freezes % 2 == 0);
    __atomic_fetch_add(&ledger_freezes, 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (u32 i = 0; i < cpu_count; i++)
        seqcount_read_begin(&ledgers[i]->seq);
}

void ledger_thaw(void)
{
    __atomic_fetch_add(&ledger_freezes, 1, __ATOMIC_RELEASE);
}

// The read section: a reader must not see half of a switch. Switches on the
// other CPU write concurrently, so the reads are marked; values read during an
// unfinished switch are discarded.
u32 ledger_read_begin(u32 cpu)
{
    return seqcount_read_begin(&ledgers[cpu]->seq);
}

bool ledger_read_retry(u32 cpu, u32 seq)
{
    return seqcount_read_retry(&ledgers[cpu]->seq, seq);
}

void ledger_writers_done(void)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE); // after the caller's reads
    for (u32 i = 0; i < cpu_count; i++)
        seqcount_writer_done(&ledgers[i]->seq);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

void ledger_set_outside(u32 cycles, u32 nmi_cycles)
{
    for (u32 i = 0; i < cpu_count; i++) {
        WRITE_ONCE(ledgers[i]->outside, cycles);
        WRITE_ONCE(ledgers[i]->nmi_outside, nmi_cycles);
    }
}

u64 ledger_await_user(u64 now, struct ledger *l)
{
    if (now >= l->user_since)
        return now;
    u64 early = l->user_since - now;
    WRITE_ONCE(l->outside, l->outside - (u32)(early / 8));
    while (now < l->user_since)
        now = rdtsc();
    return now;
}

void ledger_kernel_to_user(struct thread *t)
{
    assert(!irqs_enabled());
    struct ledger *l = ledger_write_begin();
    u64 since = rdtsc() + l->outside;
    l->in[l->subsystem] += since;
    thread_base(t)->user -= since;
    l->user_since = since;
    ledger_write_end(l);
}

void ledger_user_to_kernel(struct thread *t)
{
    assert(!irqs_enabled());
    struct ledger *l = ledger_write_begin();
    u64 now = ledger_await_user(rdtsc(), l);
    l->in[l->subsystem] -= now;
    thread_base(t)->user += now;
    ledger_write_end(l);
}

// The current TSC for values that are divided into user and kernel time: not
// before `user_since`. In a read section.
static u64 divided_at(const struct ledger *l, u64 now)
{
    u64 since = READ_ONCE(l->user_since);
    return MAX(now, since);
}

// The value of an account or sum at `now`. An open one is negative, because the
// TSC that was subtracted exceeds its value: the current TSC is added.
static u64 total(u64 value, u64 now)
{
    return (s64)value < 0 ? value + now : value;
}

u64 ledger_read(const struct cpu *cpu, const struct account *a)
{
    const struct ledger *l = ledgers[cpu->id];
    u64 cycles;
    u32 seq;
    do {
        seq = ledger_read_begin(cpu->id);
        cycles = READ_ONCE(a->cycles);
        if (READ_ONCE(l->open) == a)
            cycles += rdtsc();
    } while (ledger_read_retry(cpu->id, seq));
    return cycles;
}

void ledger_read_thread(const struct cpu *cpu, const struct thread *t,
                        u64 *user, u64 *kernel)
{
    const struct ledger *l = ledgers[cpu->id];
    const struct thread_base *base = (const struct thread_base *)t;
    u64 all;
    u32 seq;
    do {
        seq = ledger_read_begin(cpu->id);
        u64 now = rdtsc();
        all = total(READ_ONCE(base->total.cycles), now);
        *user = total(READ_ONCE(base->user), divided_at(l, now));
    } while (ledger_read_retry(cpu->id, seq));
    *kernel = all - *user;
}

u64 ledger_exception_cycles(u32 cpu, u32 vector)
{
    u64 cycles;
    u32 seq;
    do {
        seq = ledger_read_begin(cpu);
        cycles = READ_ONCE(ledgers[cpu]->exceptions[vector]);
    } while (ledger_read_retry(cpu, seq));
    return cycles;
}

// All but `irq`.
static void read_sums(const struct ledger *l, u64 now, struct ledger_sums *out)
{
    *out = (struct ledger_sums){ 0 };
    if (!l->began)
        return;
    out->idle = total(READ_ONCE(l->idle.cycles), now);
    out->start_up = total(READ_ONCE(l->start_up.cycles), now);
    u64 threads = total(READ_ONCE(l->threads), now);
    for (u32 i = 0; i < SUBSYSTEM_COUNT; i++) {
        out->in[i] = total(READ_ONCE(l->in[i]), now);
        out->kernel += out->in[i];
    }
    out->user = threads - out->kernel;
    out->elapsed = now - l->began;
}

void ledger_sums_at(u32 cpu, u64 now, struct ledger_sums *out)
{
    const struct ledger *l = ledgers[cpu];
    read_sums(l, now, out);
    for (u32 v = 0; v < ARRAY_SIZE(l->vectors); v++)
        out->irq += total(READ_ONCE(l->vectors[v].cycles), now);
}

// `irq` is the rest, which ledger_sums_at adds up: an attempt must be shorter
// than the time between two NMIs, or the loop would not end. It runs with
// interrupts off for the same reason.
void ledger_sums(u32 cpu, struct ledger_sums *out)
{
    bool again;
    do {
        u32 flags = irq_save();
        u32 seq = ledger_read_begin(cpu);
        read_sums(ledgers[cpu], divided_at(ledgers[cpu], rdtsc()), out);
        again = ledger_read_retry(cpu, seq);
        irq_restore(flags);
    } while (again);
    u64 others = out->user + out->kernel + out->idle + out->start_up;
    out->irq = out->elapsed - others;
}
