#include "kernel/sync/lock_class.h"

#include "kernel/base/providers.h"
#include "lib/string.h"

_Static_assert(LOCK_SPIN_CLASSES + LOCK_MUTEX_CLASSES == LOCK_CLASSES,
               "two parts");

const char *lock_class_names[LOCK_CLASSES] = { "(others)" };

// Indexed by class number.
static struct lock_class {
    // Test-and-set lock for the fields below, taken with interrupts off. Not a
    // spinlock: that would measure itself.
    u32 busy;
    u64 overflows;       // of all CPUs' words
    u64 contended, wait; // number of waits, TSC cycles
    u64 held, hold;      // number of measured holds, TSC cycles
    u64 reported;        // acquisitions reported last
} classes[LOCK_CLASSES];

static bool is_or_becomes(u32 class, const char *name)
{
    const char *there = NULL;
    return __atomic_compare_exchange_n(&lock_class_names[class], &there, name,
                                       false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED) ||
           there == name;
}

u32 lock_class_of(const char *name, enum lock_kind kind)
{
    u32 first = kind == LOCK_SPIN ? 0 : LOCK_SPIN_CLASSES;
    u32 room = kind == LOCK_SPIN ? LOCK_SPIN_CLASSES : LOCK_MUTEX_CLASSES;
    u32 place = lock_class_place(name, kind) - first;
    for (u32 i = 0; i < room; i++) {
        u32 class = first + (place + i) % room;
        if (is_or_becomes(class, name))
            return class;
    }
    return 0;
}

static u32 enter(struct lock_class *c)
{
    u32 flags = irq_save();
    while (__atomic_exchange_n(&c->busy, 1, __ATOMIC_ACQUIRE))
        cpu_relax();
    return flags;
}

static void leave(struct lock_class *c, u32 flags)
{
    __atomic_store_n(&c->busy, 0, __ATOMIC_RELEASE);
    irq_restore(flags);
}

void lock_class_overflowed(u32 class)
{
    struct lock_class *c = &classes[class];
    u32 flags = enter(c);
    c->overflows++;
    leave(c, flags);
}

void lock_class_waited(u32 class, u64 cycles)
{
    struct lock_class *c = &classes[class];
    u32 flags = enter(c);
    c->contended++;
    c->wait += cycles;
    leave(c, flags);
}

void lock_class_held(u32 class, u64 cycles)
{
    struct lock_class *c = &classes[class];
    u32 flags = enter(c);
    c->held++;
    c->hold += cycles;
    leave(c, flags);
}

// The sum of all additions is overflows * 2^32 plus the CPUs' words. A word may
// have overflowed without the overflow being counted yet: the result is then
// less than the previous one, which is reported instead.
static u64 acquisitions(struct lock_class *c)
{
    u64 words = 0;
    for (u32 i = 0; i < cpu_count; i++)
        words += READ_ONCE(cpus[i]->locks_taken[c - classes]);
    u64 whole = (1ull << 32) / LOCK_STEP, rest = (1ull << 32) % LOCK_STEP;
    u64 n = c->overflows * whole + (c->overflows * rest + words) / LOCK_STEP;
    return c->reported = MAX(n, c->reported);
}

void lock_classes_each(void (*fn)(const struct sysinfo_lock *, void *),
                       void *arg)
{
    for (u32 i = 0; i < LOCK_CLASSES; i++) {
        struct lock_class *c = &classes[i];
        const char *name = READ_ONCE(lock_class_names[i]);
        if (!name)
            continue;
        struct sysinfo_lock out = { 0 };
        strlcpy(out.name, name, sizeof(out.name));
        strlcpy(out.kind, i < LOCK_SPIN_CLASSES ? "spinlock" : "mutex",
                sizeof(out.kind));
        u32 flags = enter(c);
        out.acquisitions = acquisitions(c);
        out.contended = c->contended;
        out.wait = c->wait;
        out.held = c->held;
        out.hold = c->hold;
        leave(c, flags);
        if (out.acquisitions)
            fn(&out, arg);
    }
}
