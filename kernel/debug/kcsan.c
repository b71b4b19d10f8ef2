// The race detector (`make KCSAN=1`): two concurrent accesses to the same
// bytes, at least one of them a write, at least one of them not marked.
//
// The compiler calls a function before each plain access. At random distances
// (each CPU counts its own accesses) an access is delayed: the function sets a
// watchpoint on the bytes, lets other code run for a while, and removes it.
// Every access checks whether it hits another thread's or CPU's watchpoint. A
// hit is a race that happened, with both sides known. A value that changed
// while it was watched is one as well, even if the writer was not seen
// (assembly, a device).
//
// A watched access keeps its context: interrupts and preemption stay enabled if
// they were, and sometimes the thread yields. So races with the own CPU's
// interrupts and threads are found as well, also on a single CPU.
//
// Interrupt handlers and NMIs wait for a small part of the time only, or those
// of a fast sampler would follow each other without end.
//
// The memory of tasks (their pages, files' pages) is not watched: programs
// write there at any time, and races there are not the kernel's.
//
// READ_ONCE, WRITE_ONCE and atomics are marked: they never set a watchpoint,
// but they hit those of plain accesses. An intended race is marked at both
// ends, and a comment says why it is correct.
//
// The CPU that moves a watchpoint from FREE to CLAIMED owns it; the CPU that
// moves it from WATCHING to TAKEN fills in `other` and then moves it to HIT. No
// locks otherwise; any context, NMI included. Nothing here is instrumented.
#ifdef KCSAN

#include "kernel/debug/kcsan.h"

#include "arch/clock.h"
#include "arch/mmu.h"
#include "kernel/base/log.h"
#include "kernel/debug/access.h"
#include "kernel/debug/kcsan_private.h"
#include "kernel/mm/zone.h"
#include "kernel/sched/thread.h"
#include "lib/xorshift.h"

#define SLOTS 256u      // watchpoints, hashed by address
#define SLOT_BYTES 64u  // granularity of the hash
#define WATCHED_MAX 8u  // bytes of an access that are watched
#define SKIP_MEAN 500u  // accesses between two watchpoints of a CPU
#define WATCH_US 80u    // at most; half of it with interrupts off
#define PAUSE 8u        // after a wait, no interrupt waits for PAUSE times that
#define YIELD_ONE_IN 8u // one in so many watched accesses yields
_Static_assert(WATCHED_MAX <= sizeof(u64), "what snapshot holds");
_Static_assert(SLOT_BYTES >= WATCHED_MAX,
               "a watchpoint is in two slots at most");

struct watchpoint {
    u32 state; // atomic
    u32 addr, size;
    bool write;
    struct kcsan_side other; // valid in HIT
};
enum { FREE, CLAIMED, WATCHING, TAKEN, HIT };

static struct watchpoint slots[SLOTS];
static struct {
    s32 skip; // watches at 0 and below: a lost update only delays
    u32 random;
    bool in_nmi;
    u64 pause_ends[2]; // for interrupts, for NMIs (TSC)
} per_cpu[CPU_MAX];

bool kcsan_enabled;
static u32 cycles_per_us;

void kcsan_enable(void)
{
    assert(!kcsan_enabled && clock_tsc_hz());
    cycles_per_us = (u32)(clock_tsc_hz() / 1000000) + 1;
    for (u32 i = 0; i < CPU_MAX; i++) {
        per_cpu[i].random = (u32)rdtsc() * 2 + 1 + i * 0x9e3779b9u;
        per_cpu[i].skip = SKIP_MEAN;
    }
    WRITE_ONCE(kcsan_enabled, true);
}

static u32 next_random(u32 cpu)
{
    return xorshift(&per_cpu[cpu].random);
}

void kcsan_nmi(bool in)
{
    per_cpu[this_cpu()->id].in_nmi = in;
}

// --- watchpoints ------------------------------------------------------------

static ALWAYS_INLINE struct watchpoint *slot_of(u32 addr)
{
    return &slots[addr / SLOT_BYTES % SLOTS];
}

static ALWAYS_INLINE bool collides(const struct watchpoint *w, u32 addr,
                                   u32 size, bool write)
{
    return READ_ONCE(w->state) == WATCHING && addr < w->addr + w->size &&
           w->addr < addr + size && (write || w->write);
}

// Hits a watchpoint that another context owns: reports this access to the
// owner. Interrupts are off between TAKEN and HIT, because the owner spins.
static NOINLINE void report_to_owner(struct watchpoint *w, u32 addr, u32 size,
                                     bool write, bool marked, u32 ebp)
{
    u32 flags = irq_save();
    u32 watching = WATCHING;
    if (__atomic_compare_exchange_n(&w->state, &watching, TAKEN, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        // The owner may have released it since the first check.
        bool still = addr < w->addr + w->size && w->addr < addr + size;
        if (still && (write || w->write)) {
            kcsan_fill_side(&w->other, addr, size, write, marked, ebp);
            __atomic_store_n(&w->state, HIT, __ATOMIC_RELEASE);
        } else {
            __atomic_store_n(&w->state, WATCHING, __ATOMIC_RELEASE);
        }
    }
    irq_restore(flags);
}

static u64 snapshot(u32 addr, u32 size)
{
    switch (size) { // same width as the access
    case 1:
        return *(const volatile u8 *)addr;
    case 2:
        return *(const volatile u16 *)addr;
    case 4:
        return *(const volatile u32 *)addr;
    }
    u64 value = 0;
    for (u32 i = 0; i < size; i++)
        value = value << 8 | ((const volatile u8 *)addr)[i];
    return value;
}

// Whether accesses may be delayed in this context.
static bool may_wait(u32 cpu)
{
    bool in_nmi = per_cpu[cpu].in_nmi;
    return !(in_nmi || this_cpu()->irq_depth) ||
           rdtsc() >= per_cpu[cpu].pause_ends[in_nmi];
}

static void wait(u32 us)
{
    struct cpu *cpu = this_cpu();
    u32 cycles = us * cycles_per_us;
    u64 end = rdtsc() + cycles;
    bool in_nmi = per_cpu[cpu->id].in_nmi;
    if (in_nmi || cpu->irq_depth)
        per_cpu[cpu->id].pause_ends[in_nmi] = end + PAUSE * (u64)cycles;
    while (rdtsc() < end)
        cpu_relax();
}

// Delays a watched access: a preemptible one sometimes yields instead of
// waiting.
static void delay_access(u32 random)
{
    struct cpu *cpu = this_cpu();
    bool preemptible = irqs_enabled() && !cpu->preempt_count && !cpu->irq_depth;
    // A thread that has announced a sleep would fall asleep in sched_yield.
    if (preemptible && random / 2 % YIELD_ONE_IN == 0 &&
        READ_ONCE(current->state) == THREAD_RUNNING) {
        sched_yield();
        return;
    }
    wait(1 + random / 16 % (irqs_enabled() ? WATCH_US : WATCH_US / 2));
}

// Pages of tasks and files, in the direct map or in a window.
static bool is_task_memory(u32 addr)
{
    u32 number = (addr - KERNEL_BASE) >> PAGE_SHIFT;
    if (addr >= VMAP_LIMIT)
        return true;
    if (addr >= VMAP_BASE || number >= frame_count)
        return false;
    u32 use = frames[number].use;
    return use == FRAME_USER || use == FRAME_FILE;
}

static NOINLINE void watch(u32 addr, u32 size, bool write, u32 ebp)
{
    u32 cpu = this_cpu()->id;
    u32 random = next_random(cpu);
    per_cpu[cpu].skip = (s32)(1 + next_random(cpu) % (2 * SKIP_MEAN));
    if (kcsan_reporting[cpu] || !may_wait(cpu) || addr < KERNEL_BASE ||
        is_task_memory(addr))
        return;
    if (size > WATCHED_MAX) {
        addr += random % (size - WATCHED_MAX + 1);
        size = WATCHED_MAX;
    }
    struct watchpoint *w = slot_of(addr);
    u32 expected = FREE;
    if (!__atomic_compare_exchange_n(&w->state, &expected, CLAIMED, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    w->addr = addr;
    w->size = size;
    w->write = write;
    u64 before = snapshot(addr, size);
    __atomic_store_n(&w->state, WATCHING, __ATOMIC_RELEASE);
    delay_access(random);
    u64 after = snapshot(addr, size);

    struct kcsan_side mine, other;
    u32 watching = WATCHING;
    while (!__atomic_compare_exchange_n(&w->state, &watching, FREE, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        if (watching == HIT) {
            other = w->other;
            __atomic_store_n(&w->state, FREE, __ATOMIC_RELEASE);
            kcsan_fill_side(&mine, addr, size, write, false, ebp);
            kcsan_report(&mine, &other);
            return;
        }
        watching = WATCHING; // TAKEN: lasts briefly
        cpu_relax();
    }
    if (before == after)
        return;
    kcsan_fill_side(&mine, addr, size, write, false, ebp);
    kcsan_report(&mine, NULL);
}

static ALWAYS_INLINE void access(u32 addr, u32 size, bool write, bool marked)
{
    if (unlikely(!READ_ONCE(kcsan_enabled)))
        return;
    struct watchpoint *w = slot_of(addr);
    if (unlikely(collides(w, addr, size, write)))
        report_to_owner(w, addr, size, write, marked, frame_pointer());
    // If the thread migrates to another CPU in between, a count is off by one.
    if (!marked && unlikely(--per_cpu[this_cpu()->id].skip <= 0))
        watch(addr, size, write, frame_pointer());
}

// Like access, over any number of slots.
static ALWAYS_INLINE void access_range(u32 addr, u32 size, bool write)
{
    if (unlikely(!READ_ONCE(kcsan_enabled)) || !size)
        return;
    for (u32 at = addr; at - addr < size; at = (at | (SLOT_BYTES - 1)) + 1) {
        struct watchpoint *w = slot_of(at);
        if (unlikely(collides(w, addr, size, write)))
            report_to_owner(w, addr, size, write, false, frame_pointer());
    }
    per_cpu[this_cpu()->id].skip -= (s32)(size / 16);
    if (unlikely(--per_cpu[this_cpu()->id].skip <= 0))
        watch(addr, size, write, frame_pointer());
}

// --- what the compiler calls (GCC's tsan.def) -------------------------------

#define ACCESS(kind, size, write, marked)  \
    void __tsan_##kind##size(u32 addr);    \
    void __tsan_##kind##size(u32 addr)     \
    {                                      \
        access(addr, size, write, marked); \
    }
#define ACCESSES(size)                                 \
    ACCESS(read, size, false, false)                   \
    ACCESS(write, size, true, false)                   \
    ACCESS(unaligned_read, size, false, false)         \
    ACCESS(unaligned_write, size, true, false)         \
    ACCESS(volatile_read, size, false, true)           \
    ACCESS(volatile_write, size, true, true)           \
    ACCESS(unaligned_volatile_read, size, false, true) \
    ACCESS(unaligned_volatile_write, size, true, true)

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(u32 addr, u32 size)
{
    access_range(addr, size, false);
}
void __tsan_write_range(u32 addr, u32 size)
{
    access_range(addr, size, true);
}
void __tsan_init(void);
void __tsan_init(void)
{
}

// A function __tsan_atomicBITS_NAME, of the type `result`, on the `bits` at p.
#define ATOMIC(bits, result, name, parameters, write, statement) \
    result __tsan_atomic##bits##_##name parameters;              \
    result __tsan_atomic##bits##_##name parameters               \
    {                                                            \
        access((u32)p, bits / 8, write, true);                   \
        statement;                                               \
    }
#define CHANGE(bits, name, operation)                                         \
    ATOMIC(bits, u##bits, name, (u##bits * p, u##bits v, int o UNUSED), true, \
           return operation(p, v, __ATOMIC_SEQ_CST))
#define EXCHANGE_IF(bits, name)                                     \
    ATOMIC(bits, int, name,                                         \
           (u##bits * p, u##bits * expect, u##bits v, int o UNUSED, \
            int failed UNUSED),                                     \
           true,                                                    \
           return __atomic_compare_exchange_n(                      \
               p, expect, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
#define ATOMICS(bits)                                                       \
    ATOMIC(bits, u##bits, load, (const u##bits *p, int o UNUSED), false,    \
           return __atomic_load_n(p, __ATOMIC_SEQ_CST))                     \
    ATOMIC(bits, void, store, (u##bits * p, u##bits v, int o UNUSED), true, \
           __atomic_store_n(p, v, __ATOMIC_SEQ_CST))                        \
    EXCHANGE_IF(bits, compare_exchange_strong)                              \
    EXCHANGE_IF(bits, compare_exchange_weak)                                \
    CHANGE(bits, exchange, __atomic_exchange_n)                             \
    CHANGE(bits, fetch_add, __atomic_fetch_add)                             \
    CHANGE(bits, fetch_sub, __atomic_fetch_sub)                             \
    CHANGE(bits, fetch_and, __atomic_fetch_and)                             \
    CHANGE(bits, fetch_or, __atomic_fetch_or)                               \
    CHANGE(bits, fetch_xor, __atomic_fetch_xor)

ATOMICS(8)
ATOMICS(16)
ATOMICS(32)

// CMPXCHG8B can do every 64-bit operation, but __atomic_* is a library call
// unless the compiler knows the alignment.
ATOMIC(64, u64, fetch_add, (u64 * p, u64 v, int o UNUSED), true,
       return __sync_fetch_and_add(p, v))

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order UNUSED)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order UNUSED)
{
    barrier();
}

#endif
