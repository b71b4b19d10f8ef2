// The race detector (`make KCSAN=1`): two accesses to the same bytes at the same
// time, at least one of them a write, at least one of them not marked.
//
// The compiler calls a function before each plain access. Every so often (each
// CPU counts its own accesses; the distance is random) the access is made to
// last: it sets a watchpoint on its bytes, lets others run for a while, and takes
// it away. Every access looks whether it meets a watchpoint of somebody else.
// A hit is a race that happened, with both sides at hand; so is a value that
// changed while it was watched, even if the writer was not seen.
//
// READ_ONCE, WRITE_ONCE and atomics are marked: they never set a watchpoint, but
// run into those of plain accesses. An intended race is marked at both ends, and
// says in a comment why it is right.
//
// Nothing here is instrumented (the build compiles kernel/debug plainly).
#ifdef KCSAN

#include "kernel/init/log.h"
#include "kernel/sched/thread.h"
#include "lib/string.h"

#define SLOTS 64u          // watchpoints, hashed by address
#define SLOT_BYTES 64u     // an address hashes by these; accesses are aligned
#define SKIP_MEAN 2000u    // accesses between two watchpoints of a CPU
#define WATCH_TURNS 60u    // how long a watched access lasts, in PAUSEs
#define STACK_MAX 12u

struct side {
    u32 addr, size, cpu;
    bool write, marked;
    u32 depth;
    u32 pcs[STACK_MAX];
};

struct watchpoint {
    u32 state; // FREE, WATCHING or HIT; atomic
    u32 addr, size, cpu;
    bool write;
    struct side other; // valid in HIT
};
enum { FREE, CLAIMED, WATCHING, TAKEN, HIT };

static struct watchpoint slots[SLOTS];
static struct {
    u32 skip, random, disabled;
} per_cpu[CPU_MAX];

static bool enabled;

void kcsan_enable(void)
{
    for (u32 i = 0; i < CPU_MAX; i++) {
        per_cpu[i].random = (u32)rdtsc() * 2 + 1 + i * 0x9e3779b9u;
        per_cpu[i].skip = SKIP_MEAN;
    }
    WRITE_ONCE(enabled, true);
}

static u32 next_random(u32 cpu)
{
    u32 x = per_cpu[cpu].random; // xorshift32
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return per_cpu[cpu].random = x;
}

static void fill_side(struct side *s, u32 addr, u32 size, bool write,
                      bool marked)
{
    s->addr = addr;
    s->size = size;
    s->cpu = this_cpu()->id;
    s->write = write;
    s->marked = marked;
    s->depth = backtrace(frame_pointer(), s->pcs, STACK_MAX);
}

static void say_side(const struct side *s)
{
    log_printf("kcsan: CPU %u: %s%s of %u bytes at %08x\n", s->cpu,
               s->marked ? "marked " : "", s->write ? "write" : "read",
               s->size, s->addr);
    log_backtrace(s->pcs, s->depth);
}

static NORETURN void report(const struct side *mine, const struct side *other)
{
    WRITE_ONCE(enabled, false);
    say_side(mine);
    if (other)
        say_side(other);
    else
        log_printf("kcsan: and a writer that was not seen (the value "
                   "changed)\n");
    u32 offset = 0;
    const char *name = ksym_lookup(mine->pcs[2], &offset);
    panic("kcsan: data race in %s+%#x", name ? name : "?", offset);
}

static struct watchpoint *slot_of(u32 addr)
{
    return &slots[addr / SLOT_BYTES % SLOTS];
}

static bool overlaps(const struct watchpoint *w, u32 addr, u32 size)
{
    return addr < w->addr + w->size && w->addr < addr + size;
}

// Somebody else's watchpoint on these bytes: tell its owner about us.
static void check_watchpoint(u32 addr, u32 size, bool write, bool marked)
{
    struct watchpoint *w = slot_of(addr);
    if (READ_ONCE(w->state) != WATCHING || !overlaps(w, addr, size) ||
        !(write || w->write))
        return;
    u32 watching = WATCHING;
    if (!__atomic_compare_exchange_n(&w->state, &watching, TAKEN, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    fill_side(&w->other, addr, size, write, marked);
    __atomic_store_n(&w->state, HIT, __ATOMIC_RELEASE);
}

static u64 snapshot(u32 addr, u32 size)
{
    u64 value = 0;
    memcpy(&value, (const void *)addr, size);
    return value;
}

// Interrupts are off meanwhile only if the caller had them off: an interrupt
// that races with its own CPU's code is a race as well. Its watchpoints would
// find ours busy, so it sets none.
static void watch(u32 addr, u32 size, bool write)
{
    struct watchpoint *w = slot_of(addr);
    u32 nobody = FREE;
    if (!__atomic_compare_exchange_n(&w->state, &nobody, CLAIMED, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    w->addr = addr;
    w->size = size;
    w->write = write;
    w->cpu = this_cpu()->id;
    u64 before = snapshot(addr, size);
    __atomic_store_n(&w->state, WATCHING, __ATOMIC_RELEASE);
    for (u32 i = 0; i < WATCH_TURNS; i++)
        cpu_relax();
    u64 after = snapshot(addr, size);

    u32 watching = WATCHING;
    if (__atomic_compare_exchange_n(&w->state, &watching, FREE, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        if (before == after)
            return;
        struct side mine;
        fill_side(&mine, addr, size, write, false);
        report(&mine, NULL);
    }
    while (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) != HIT)
        cpu_relax();
    struct side mine, other = w->other;
    fill_side(&mine, addr, size, write, false);
    report(&mine, &other);
}

static ALWAYS_INLINE void access(u32 addr, u32 size, bool write, bool marked)
{
    if (unlikely(!READ_ONCE(enabled)))
        return;
    check_watchpoint(addr, size, write, marked);
    if (marked)
        return;
    u32 cpu = this_cpu()->id;
    if (likely(--per_cpu[cpu].skip))
        return;
    per_cpu[cpu].skip = 1 + next_random(cpu) % (2 * SKIP_MEAN);
    if (per_cpu[cpu].disabled)
        return;
    preempt_disable();
    per_cpu[cpu].disabled++;
    watch(addr, MIN(size, 8u), write);
    per_cpu[cpu].disabled--;
    preempt_enable_no_resched();
}

// --- what the compiler calls (GCC's tsan.def) ----------------------------------------

#define ACCESS(size)                                              \
    void __tsan_read##size(u32 addr);                             \
    void __tsan_read##size(u32 addr)                              \
    {                                                             \
        access(addr, size, false, false);                         \
    }                                                             \
    void __tsan_write##size(u32 addr);                            \
    void __tsan_write##size(u32 addr)                             \
    {                                                             \
        access(addr, size, true, false);                          \
    }                                                             \
    void __tsan_unaligned_read##size(u32 addr);                   \
    void __tsan_unaligned_read##size(u32 addr)                    \
    {                                                             \
        access(addr, size, false, false);                         \
    }                                                             \
    void __tsan_unaligned_write##size(u32 addr);                  \
    void __tsan_unaligned_write##size(u32 addr)                   \
    {                                                             \
        access(addr, size, true, false);                          \
    }                                                             \
    void __tsan_volatile_read##size(u32 addr);                    \
    void __tsan_volatile_read##size(u32 addr)                     \
    {                                                             \
        access(addr, size, false, true);                          \
    }                                                             \
    void __tsan_volatile_write##size(u32 addr);                   \
    void __tsan_volatile_write##size(u32 addr)                    \
    {                                                             \
        access(addr, size, true, true);                           \
    }                                                             \
    void __tsan_unaligned_volatile_read##size(u32 addr);          \
    void __tsan_unaligned_volatile_read##size(u32 addr)           \
    {                                                             \
        access(addr, size, false, true);                          \
    }                                                             \
    void __tsan_unaligned_volatile_write##size(u32 addr);         \
    void __tsan_unaligned_volatile_write##size(u32 addr)          \
    {                                                             \
        access(addr, size, true, true);                           \
    }

ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __tsan_read_range(u32 addr, u32 size);
void __tsan_read_range(u32 addr, u32 size)
{
    access(addr, size, false, false);
}
void __tsan_write_range(u32 addr, u32 size);
void __tsan_write_range(u32 addr, u32 size)
{
    access(addr, size, true, false);
}
void __tsan_init(void);
void __tsan_init(void)
{
}

#define ATOMIC(bits, type)                                                    \
    type __tsan_atomic##bits##_load(const type *p, int order);                \
    type __tsan_atomic##bits##_load(const type *p, int order UNUSED)          \
    {                                                                         \
        access((u32)p, sizeof(type), false, true);                            \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                          \
    }                                                                         \
    void __tsan_atomic##bits##_store(type *p, type v, int order);             \
    void __tsan_atomic##bits##_store(type *p, type v, int order UNUSED)       \
    {                                                                         \
        access((u32)p, sizeof(type), true, true);                             \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                             \
    }                                                                         \
    int __tsan_atomic##bits##_compare_exchange_strong(type *p, type *expect,  \
                                                      type v, int a, int b);  \
    int __tsan_atomic##bits##_compare_exchange_strong(                        \
        type *p, type *expect, type v, int a UNUSED, int b UNUSED)            \
    {                                                                         \
        access((u32)p, sizeof(type), true, true);                             \
        return __atomic_compare_exchange_n(p, expect, v, false,               \
                                           __ATOMIC_SEQ_CST,                  \
                                           __ATOMIC_SEQ_CST);                 \
    }                                                                         \
    int __tsan_atomic##bits##_compare_exchange_weak(type *p, type *expect,    \
                                                    type v, int a, int b);    \
    int __tsan_atomic##bits##_compare_exchange_weak(type *p, type *expect,    \
                                                    type v, int a, int b)     \
    {                                                                         \
        return __tsan_atomic##bits##_compare_exchange_strong(p, expect, v, a, \
                                                             b);              \
    }                                                                         \
    CHANGE(bits, type, exchange, __atomic_exchange_n)                         \
    CHANGE(bits, type, fetch_add, __atomic_fetch_add)                         \
    CHANGE(bits, type, fetch_sub, __atomic_fetch_sub)                         \
    CHANGE(bits, type, fetch_and, __atomic_fetch_and)                         \
    CHANGE(bits, type, fetch_or, __atomic_fetch_or)                           \
    CHANGE(bits, type, fetch_xor, __atomic_fetch_xor)

#define CHANGE(bits, type, name, operation)                                  \
    type __tsan_atomic##bits##_##name(type *p, type v, int order);           \
    type __tsan_atomic##bits##_##name(type *p, type v, int order UNUSED)     \
    {                                                                        \
        access((u32)p, sizeof(type), true, true);                            \
        return operation(p, v, __ATOMIC_SEQ_CST);                            \
    }

ATOMIC(8, u8)
ATOMIC(16, u16)
ATOMIC(32, u32)

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
