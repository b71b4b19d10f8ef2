// `timers_lock` guards which timer has which owner and whether it is started.
// The fields that the callbacks read (fn, arg, mode) are written while the
// device is silent, so they are read without a lock, in NMIs too.
//
// Stopping quiesces the other CPUs: when each has taken an interrupt (IPI), a
// callback that was running there has ended, and an NMI that was sent before
// has been taken, because NMIs are taken first. So timer_fire needs no
// synchronisation of its own.

#include "kernel/time/timer.h"

#include "arch/cpu.h"
#include "arch/nmi.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/debug/fault.h"
#include "kernel/sync/spinlock.h"
#include "kernel/time/eventwatch.h"
#include "lib/format.h"
#include "lib/string.h"

#define HOW (TIMER_PERIODIC | TIMER_ONESHOT)
#define MODE_BITS (HOW | TIMER_ALL_CPUS | TIMER_NMI | TIMER_RANDOM)

bool timers_in_test;
static struct spinlock timers_lock = SPINLOCK_INIT("timers");

#define FOR_EACH_TIMER(t) LINKER_SET_FOR_EACH(struct timer, t, timers)

// Scales whole seconds and the rest separately, so that nothing overflows.
static u64 scale(u64 value, u64 from_hz, u64 to_hz)
{
    u64 rest = value % from_hz * to_hz + from_hz / 2;
    return value / from_hz * to_hz + rest / from_hz;
}

u64 timer_ticks(const struct timer *t, u64 ns)
{
    assert(t->hz);
    return scale(ns, NSEC_PER_SEC, t->hz);
}

u64 timer_ns(const struct timer *t, u64 ticks)
{
    assert(t->hz);
    return scale(ticks, t->hz, NSEC_PER_SEC);
}

u64 timer_period_ns(const struct timer *t)
{
    return timer_ns(t, t->period);
}

// While no other CPU runs, or under timers_lock.
static void probe(struct timer *t)
{
    if (t->probed)
        return;
    t->why_not = t->probe(t);
    t->probed = true;
    if (t->why_not && !strcmp(t->why_not, TIMER_SILENT))
        log_printf("clock: the timer %s is not used: %s\n", t->name,
                   TIMER_SILENT);
}

void timers_probe(void)
{
    FOR_EACH_TIMER(t)
    {
        probe(*t);
    }
}

// The timer of highest rank below `rank`; NULL: there is none.
static struct timer *next_below(u32 rank)
{
    struct timer *best = NULL;
    FOR_EACH_TIMER(t)
    {
        if ((*t)->rank < rank && !((*t)->flags & TIMER_ABSENT) &&
            (!best || (*t)->rank > best->rank))
            best = *t;
    }
    return best;
}

void timers_each(void (*fn)(const struct timer *t, void *arg), void *arg)
{
    struct timer *t = NULL;
    while ((t = next_below(t ? t->rank : ~0u)))
        fn(t, arg);
}

// Three digits at most: 10 us, 54 ms.
static size_t put_time(char *text, size_t size, u64 ns)
{
    static const char *const units[] = { "ns", "us", "ms", "s" };
    u32 unit = 0;
    for (; ns >= 1000 && unit < ARRAY_SIZE(units) - 1; unit++)
        ns /= 1000;
    return (size_t)format(text, size, "%llu %s", ns, units[unit]);
}

void timer_describe(const struct timer *t, char *text, size_t size)
{
    if (t->why_not) {
        strlcpy(text, t->why_not, size);
        return;
    }
    char from[16], to[16];
    put_time(from, sizeof(from), t->min_period);
    put_time(to, sizeof(to), t->max_period);
    const char *owner = READ_ONCE(t->owner);
    format(text, size, "%s%s%s%s%s to %s%s%s",
           t->flags & TIMER_PERIODIC ? "periodic, " : "",
           t->flags & TIMER_ONESHOT ? "one-shot, " : "",
           t->flags & TIMER_TSC_DEADLINE ? "tsc-deadline, " : "",
           t->flags & TIMER_NMI ? "nmi, " : "", from, to, owner ? "; for " : "",
           owner ? owner : "");
}

// --- reserving; under timers_lock

// The owner of the timer, or of one that shares its interrupt line.
static const char *line_owner(const struct timer *wanted)
{
    const char *owner = READ_ONCE(wanted->owner);
    FOR_EACH_TIMER(t)
    {
        if (!owner && wanted->line && (*t)->line == wanted->line)
            owner = READ_ONCE((*t)->owner);
    }
    return owner;
}

const char *timer_user(const struct timer *wanted)
{
    const char *owner = line_owner(wanted);
    return owner == event_watch_owner ? NULL : owner;
}

static int availability(struct timer *t,
                        const char *(*user)(const struct timer *t))
{
    probe(t);
    if (t->why_not)
        return -ENODEV;
    return user(t) ? -EBUSY : 0;
}

// The timer of highest rank that `suits` and has no `user`; -ENOENT: none
// suits.
static int find(bool (*suits)(const struct timer *t, const void *what),
                const void *what, const char *(*user)(const struct timer *t),
                struct timer **out)
{
    int err = -ENOENT;
    u32 rank = 0;
    FOR_EACH_TIMER(t)
    {
        if (!suits(*t, what))
            continue;
        int here = availability(*t, user);
        if (!here && (err || (*t)->rank > rank)) {
            *out = *t;
            rank = (*t)->rank;
            err = 0;
        } else if (err == -ENOENT || (err && here == -EBUSY)) {
            err = here;
        }
    }
    return err;
}

struct need {
    u32 flags;
    u64 min_ns, max_ns;
};

static bool meets_need(const struct timer *t, const void *what)
{
    const struct need *n = what;
    return !t->why_not && (t->flags & n->flags) == n->flags &&
           t->min_period <= n->min_ns && t->max_period >= n->max_ns;
}

static bool is_named(const struct timer *t, const void *what)
{
    const char *name = what;
    size_t n = strlen(name);
    if (strncmp(t->name, name, n))
        return false;
    const char *rest = t->name + n;
    return !rest[0] || (rest[0] >= '0' && rest[0] <= '9' && !rest[1]);
}

// True: the event watch owns the timer that is to be reserved.
static bool reserve_free(bool (*suits)(const struct timer *t, const void *what),
                         const void *what, const char *owner,
                         struct timer **out, int *err)
{
    bool yields = owner != event_watch_owner && irqs_enabled();
    u32 irqs = spin_lock_irq(&timers_lock);
    *err = find(suits, what, yields ? timer_user : line_owner, out);
    bool watched = !*err && line_owner(*out);
    if (!*err && !watched)
        WRITE_ONCE((*out)->owner, owner);
    spin_unlock_irq(&timers_lock, irqs);
    return watched;
}

static int reserve(bool (*suits)(const struct timer *t, const void *what),
                   const void *what, const char *owner, struct timer **out)
{
    int err;
    bool gave_way = false;
    while (reserve_free(suits, what, owner, out, &err)) {
        event_watch_release();
        gave_way = true;
    }
    if (gave_way)
        event_watch_resume();
    return err;
}

int timer_reserve_name(const char *name, const char *owner, struct timer **out)
{
    return reserve(is_named, name, owner, out);
}

int timer_reserve(u32 flags, u64 min_ns, u64 max_ns, const char *owner,
                  struct timer **out)
{
    struct need n = { flags, min_ns, max_ns };
    int err = reserve(meets_need, &n, owner, out);
    return err == -ENOENT ? -ENODEV : err;
}

void timer_withdraw(const char *name, u32 flags)
{
    u32 irqs = spin_lock_irq(&timers_lock);
    FOR_EACH_TIMER(t)
    {
        if (is_named(*t, name))
            (*t)->flags &= ~flags;
    }
    spin_unlock_irq(&timers_lock, irqs);
}

void timer_release(struct timer *t)
{
    timer_stop(t);
    u32 irqs = spin_lock_irq(&timers_lock);
    assert(t->owner);
    bool watched = t->owner == event_watch_owner;
    WRITE_ONCE(t->owner, NULL);
    spin_unlock_irq(&timers_lock, irqs);
    if (watched || !irqs_enabled())
        return;
    event_watch_leave(t);
    event_watch_resume();
}

// --- interrupts

// True if the interrupt is the timer's.
static ALWAYS_INLINE bool served(struct timer *t)
{
    return this_cpu_read(id) != 0 || !t->serve || t->serve(t);
}

static ALWAYS_INLINE void call(const struct timer *t, timer_fn_t fn,
                               const struct trapframe *tf)
{
    if (fault_due(FAULT_TIMER_LOST))
        return;
    fn(t->arg, tf);
    if (fault_due(FAULT_TIMER_DOUBLE))
        fn(t->arg, tf);
}

void timer_fire(struct timer *t, const struct trapframe *tf)
{
    if (!served(t))
        return;
    timer_fn_t fn = READ_ONCE(t->fn);
    if (likely(fn))
        call(t, fn, tf);
}

void timer_interrupt(void *arg)
{
    timer_fire(arg, this_cpu()->irq_frame);
}

// A timer's NMIs cannot be distinguished from others, so all are claimed.
static NOTRACE bool timer_nmi(struct nmi_owner *owner,
                              const struct trapframe *tf)
{
    struct timer *t = container_of(owner, struct timer, nmi);
    if (served(t))
        call(t, t->fn, tf); // not NULL while the timer owns the NMIs
    return true;
}

// --- starting

struct start {
    struct timer *timer;
    u64 ticks;
    int err; // atomic: set by any CPU
};

static void start_here(void *arg)
{
    struct start *s = arg;
    int err = s->timer->start(s->timer, s->timer->mode, s->ticks);
    if (err)
        __atomic_store_n(&s->err, err, __ATOMIC_RELAXED);
}

static void stop_here(void *arg)
{
    struct timer *t = arg;
    t->stop(t);
}

// Calls `fn` on the CPUs that serve the timer's interrupts, so that the driver
// need not expect one on another CPU at the same time.
static void call_on_cpus(struct timer *t, void (*fn)(void *arg), void *arg)
{
    if (t->flags & TIMER_PER_CPU)
        smp_call_all(fn, arg);
    else
        smp_call_boot_cpu(fn, arg);
}

static bool supports(const struct timer *t, u32 mode, u64 ns)
{
    u32 how = mode & HOW;
    u32 vary = mode & TIMER_RANDOM ? TIMER_RANDOM_PARTS : 1;
    return (mode & t->flags & MODE_BITS) == mode &&
           (how == TIMER_PERIODIC || (how == TIMER_ONESHOT && vary == 1)) &&
           ns / vary >= t->min_period && ns * vary <= t->max_period;
}

// Claims the timer for this start: any other start fails until set_free.
static int claim(struct timer *t, u32 mode, u64 ticks, timer_fn_t fn, void *arg)
{
    u32 irqs = spin_lock_irq(&timers_lock);
    assert(t->owner);
    int err = t->mode ? -EBUSY : 0;
    if (!err) {
        WRITE_ONCE(t->mode, mode);
        t->stopping = false;
        t->period = ticks;
        t->arg = arg;
        __atomic_store_n(&t->fn, fn, __ATOMIC_RELEASE);
    }
    spin_unlock_irq(&timers_lock, irqs);
    return err;
}

static void set_free(struct timer *t)
{
    if (t->mode & TIMER_NMI) {
        nmi_release(&t->nmi);
        smp_quiesce_others(); // an NMI that found it has ended
    }
    WRITE_ONCE(t->fn, NULL);
    smp_quiesce_others(); // a callback that read it has ended
    u32 irqs = spin_lock_irq(&timers_lock);
    WRITE_ONCE(t->mode, 0);
    spin_unlock_irq(&timers_lock, irqs);
}

static int start_device(struct timer *t, u64 ticks)
{
    struct start s = { t, ticks, 0 };
    call_on_cpus(t, start_here, &s);
    if (s.err)
        call_on_cpus(t, stop_here, t); // some CPUs may have started it
    return s.err;
}

int timer_start(struct timer *t, u32 mode, u64 period_ns, timer_fn_t fn,
                void *arg)
{
    if (!supports(t, mode, period_ns))
        return -EINVAL;
    u64 ticks = MAX(timer_ticks(t, period_ns), 1ull);
    int err = claim(t, mode, ticks, fn, arg);
    if (err)
        return err;
    event_watch_join(t);
    if (mode & TIMER_NMI) {
        t->nmi.fn = timer_nmi;
        err = nmi_claim(&t->nmi);
    }
    if (!err)
        err = start_device(t, ticks);
    if (err)
        set_free(t);
    return err;
}

int timer_again(struct timer *t, u64 ns)
{
    assert(t->owner);
    if (READ_ONCE(t->stopping))
        return -EBUSY;
    if (!supports(t, t->mode, ns) || !(t->mode & TIMER_ONESHOT))
        return -EINVAL;
    return t->start(t, t->mode, MAX(timer_ticks(t, ns), 1ull));
}

void timer_stop(struct timer *t)
{
    if (!READ_ONCE(t->mode))
        return;
    assert(irqs_enabled() && t->owner);
    WRITE_ONCE(t->stopping, true);
    if (t->mode & TIMER_ONESHOT)
        smp_quiesce_others(); // no callback sets another shot
    call_on_cpus(t, stop_here, t);
    smp_quiesce_others(); // interrupts in flight have been taken
    set_free(t);
}

void timer_give_up(struct timer *t, const char *why)
{
    u32 irqs = spin_lock_irq(&timers_lock);
    WRITE_ONCE(t->why_not, why);
    WRITE_ONCE(t->owner, NULL);
    spin_unlock_irq(&timers_lock, irqs);
}

void timer_attach(struct timer *t, timer_fn_t fn)
{
    assert(t->owner && !t->mode);
    WRITE_ONCE(t->mode, TIMER_ONESHOT);
    WRITE_ONCE(t->fn, fn);
}
