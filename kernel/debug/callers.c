// Backtraces as small numbers.
//
// A number, once assigned, always identifies the same backtrace, so readers
// need no lock. A new set is filled in by the CPU that reserved its place in
// the table and then linked into its hash chain by compare-and-exchange. Two
// CPUs that record the same new backtrace concurrently may each keep a copy,
// which wastes one entry.
#ifdef CHECKED

#include "kernel/debug/callers.h"

#include "arch/mmu.h"
#include "kernel/base/log.h"
#include "kernel/sched/thread.h"

#define BUCKETS 4096u

struct set {
    u16 next; // in the hash chain; 0 ends it
    u16 depth;
    u32 pcs[CALLERS_DEPTH];
};

static struct set sets[CALLERS_MAX]; // 0 is unused
static u16 buckets[BUCKETS];
static u32 taken = 1; // atomic

u32 callers_stack_end(u32 at)
{
    const struct cpu *cpu = this_cpu();
    const struct thread *t = cpu->thread;
    if (t && t->kstack && at - (u32)t->kstack < KSTACK_SIZE)
        return (u32)t->kstack + KSTACK_SIZE;
    u32 idle = (u32)cpu->idle_stack_top;
    return idle - at <= KSTACK_SIZE ? idle : 0;
}

u32 callers_walk(const u32 *frame, u32 *pcs, u32 most)
{
    u32 n = 0, at = (u32)frame, end = callers_stack_end(at);
    while (n < most && at < end && end - at >= 2 * sizeof(u32)) {
        frame = (const u32 *)at;
        if (frame[1] < KERNEL_BASE)
            break;
        pcs[n++] = frame[1];
        if (frame[0] <= at || frame[0] % sizeof(u32))
            break;
        at = frame[0];
    }
    return n;
}

static bool same(const struct set *s, const u32 *pcs, u32 n)
{
    if (s->depth != n)
        return false;
    for (u32 i = 0; i < n; i++) {
        if (s->pcs[i] != pcs[i])
            return false;
    }
    return true;
}

static u16 find(u16 from, const u32 *pcs, u32 n)
{
    while (from && !same(&sets[from], pcs, n))
        from = sets[from].next;
    return from;
}

static u16 add(u16 *bucket, const u32 *pcs, u32 n)
{
    u32 number = __atomic_load_n(&taken, __ATOMIC_RELAXED);
    if (number < CALLERS_MAX)
        number = __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    if (number >= CALLERS_MAX)
        return 0;
    struct set *s = &sets[number];
    s->depth = (u16)n;
    for (u32 i = 0; i < n; i++)
        s->pcs[i] = pcs[i];
    s->next = __atomic_load_n(bucket, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(bucket, &s->next, (u16)number, false,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    return (u16)number;
}

NOINLINE u16 callers_here(void)
{
    u32 pcs[CALLERS_DEPTH], hash = 2166136261u; // FNV-1a, a word at a time
    u32 n = callers_walk(__builtin_frame_address(0), pcs, CALLERS_DEPTH);
    for (u32 i = 0; i < n; i++)
        hash = (hash ^ pcs[i]) * 16777619u;
    u16 *bucket = &buckets[(hash ^ hash >> 16) % BUCKETS];
    u16 known = find(__atomic_load_n(bucket, __ATOMIC_ACQUIRE), pcs, n);
    return known ? known : add(bucket, pcs, n);
}

u32 callers_get(u16 number, const u32 **pcs)
{
    *pcs = sets[number].pcs;
    return sets[number].depth;
}

void callers_log(const char *what, u16 number)
{
    const u32 *pcs;
    u32 n = callers_get(number, &pcs);
    log_printf("%s\n", what);
    for (u32 i = 0; i < n; i++) {
        u32 offset = 0;
        const char *name = ksym_lookup(pcs[i], &offset);
        log_printf("  %08x %s+%#x\n", pcs[i], name ? name : "?", offset);
    }
}

#endif
