#ifdef LOCKDEP

#include "kernel/sync/lockdep.h"

#include "kernel/base/log.h"
#include "kernel/base/raw_lock.h"
#include "kernel/base/user_return.h"
#include "lib/string.h"

#define CLASSES_MAX 256

struct class
{
    const char *name;
    enum lockdep_kind kind;
    u32 in_interrupt; // where an interrupt may wait for it; 0: nowhere
    u32 irqs_on;      // where it was taken with interrupts on
    u32 after[CLASSES_MAX / 32]; // bit map: classes taken with this one held
    u32 callers[CLASSES_MAX];    // where, for each class of `after`
};
static struct class classes[CLASSES_MAX];
static u32 class_count;
// Guards classes and edges while they are added. Not a spinlock: that would
// check itself.
static struct raw_lock graph_lock;

static struct lockdep_stack cpu_held[CPU_MAX];
// After the first report nothing is checked: the report takes locks itself.
static bool reporting;

static void print_lock(const char *what, u32 class, u32 caller)
{
    reporting = true;
    u32 offset = 0;
    const char *name = ksym_lookup(caller, &offset);
    log_printf("lockdep: %s '%s' at %08x %s+%#x\n", what, classes[class].name,
               caller, name ? name : "?", offset);
}

static u32 look_up(const char *name, enum lockdep_kind kind)
{
    u32 count = READ_ONCE(class_count), i = 0;
    while (i < count &&
           (classes[i].kind != kind ||
            (classes[i].name != name && strcmp(classes[i].name, name))))
        i++;
    return i;
}

static u32 find_class(const char *name, enum lockdep_kind kind)
{
    assert(name);
    u32 i = look_up(name, kind);
    if (i < READ_ONCE(class_count))
        return i;
    u32 flags = raw_lock(&graph_lock);
    i = look_up(name, kind); // another CPU may have added it
    if (i == class_count) {
        assert(class_count < CLASSES_MAX);
        classes[i].name = name;
        classes[i].kind = kind;
        __atomic_store_n(&class_count, i + 1, __ATOMIC_RELEASE);
    }
    raw_unlock(&graph_lock, flags);
    return i;
}

static bool has_edge(u32 from, u32 to)
{
    return READ_ONCE(classes[from].after[to / 32]) & (1u << to % 32);
}

// Depth-first search: the next class on a path from `from` to `to`, or -1.
static int next_on_path(u32 from, u32 to, u32 *seen)
{
    for (u32 c = 0; c < class_count; c++) {
        if (!has_edge(from, c) || (seen[c / 32] & (1u << c % 32)))
            continue;
        seen[c / 32] |= 1u << c % 32;
        if (c == to || next_on_path(c, to, seen) >= 0)
            return (int)c;
    }
    return -1;
}

static NORETURN void report_circle(u32 held, u32 held_at, u32 wanted,
                                   u32 caller)
{
    print_lock("wants", wanted, caller);
    print_lock("while it holds", held, held_at);
    log_printf("lockdep: but elsewhere the order is reversed:\n");
    for (u32 c = wanted; c != held;) {
        u32 seen[CLASSES_MAX / 32] = { 0 };
        int next = next_on_path(c, held, seen);
        if (next < 0)
            break;
        log_printf("lockdep: while holding '%s'\n", classes[c].name);
        print_lock("it takes", (u32)next, classes[c].callers[next]);
        c = (u32)next;
    }
    panic("lockdep: '%s' and '%s' are taken in both orders", classes[held].name,
          classes[wanted].name);
}

static NORETURN void report_interrupt(u32 class)
{
    print_lock("an interrupt waits for", class, classes[class].in_interrupt);
    print_lock("with interrupts on it takes", class, classes[class].irqs_on);
    panic("lockdep: an interrupt could deadlock on '%s'", classes[class].name);
}

// Marks a class that an interrupt handler takes, or waits for indirectly: for a
// lock whose holder waits for this one. So all classes that are taken while a
// marked class is held are marked, too.
static void mark_in_interrupt(u32 class, u32 caller)
{
    struct class *c = &classes[class];
    if (c->in_interrupt)
        return;
    c->in_interrupt = caller;
    if (c->irqs_on)
        report_interrupt(class);
    for (u32 next = 0; next < class_count; next++) {
        if (has_edge(class, next))
            mark_in_interrupt(next, c->callers[next]);
    }
}

static void add_edge(const struct lockdep_held *held, u32 wanted, u32 caller)
{
    if (has_edge(held->class, wanted))
        return;
    u32 seen[CLASSES_MAX / 32] = { 0 };
    u32 flags = raw_lock(&graph_lock);
    bool circle = next_on_path(wanted, held->class, seen) >= 0;
    if (!circle) {
        classes[held->class].callers[wanted] = caller;
        classes[held->class].after[wanted / 32] |= 1u << wanted % 32;
        if (classes[held->class].in_interrupt)
            mark_in_interrupt(wanted, caller);
    }
    raw_unlock(&graph_lock, flags);
    if (circle)
        report_circle(held->class, held->caller, wanted, caller);
}

static void check_order(const struct lockdep_stack *s, u32 class,
                        const void *lock, bool nested, u32 caller)
{
    for (u32 i = 0; i < s->depth; i++) {
        const struct lockdep_held *h = &s->held[i];
        if (h->lock == lock || (h->class == class && !nested)) {
            print_lock("wants", class, caller);
            print_lock("while it holds", h->class, h->caller);
            panic("lockdep: '%s' is taken again", classes[class].name);
        }
        if (h->class != class)
            add_edge(h, class, caller);
    }
}

static void check_interrupts(u32 class, u32 caller)
{
    struct class *c = &classes[class];
    if (this_cpu()->irq_depth) {
        if (c->in_interrupt)
            return;
        u32 flags = raw_lock(&graph_lock);
        mark_in_interrupt(class, caller);
        raw_unlock(&graph_lock, flags);
    } else if (irqs_enabled()) {
        c->irqs_on = caller;
        if (c->in_interrupt)
            report_interrupt(class);
    }
}

static struct lockdep_stack *stack_of(enum lockdep_kind kind)
{
    if (kind == LOCKDEP_MUTEX && current)
        return current_base()->mutexes;
    return &cpu_held[this_cpu()->id];
}

static void push(u32 class, const void *lock, enum lockdep_kind kind,
                 u32 caller)
{
    struct lockdep_stack *s = stack_of(kind);
    assert(s->depth < LOCKDEP_HELD_MAX);
    s->held[s->depth++] = (struct lockdep_held){ (u16) class, caller, lock };
}

// For spinlocks, preemption is disabled; for mutexes, the thread may migrate.
void lockdep_acquire(const char *name, const void *lock, enum lockdep_kind kind,
                     bool nested, u32 caller)
{
    if (reporting)
        return;
    caller = call_trace_caller(caller);
    if (kind == LOCKDEP_MUTEX)
        lockdep_may_sleep(name);
    u32 class = find_class(name, kind);
    u32 flags = irq_save();
    if (current)
        check_order(current_base()->mutexes, class, lock, nested, caller);
    check_order(&cpu_held[this_cpu()->id], class, lock, nested, caller);
    irq_restore(flags);
    if (kind == LOCKDEP_SPIN)
        check_interrupts(class, caller);
    flags = irq_save();
    push(class, lock, kind, caller);
    irq_restore(flags);
}

void lockdep_acquired_by_try(const char *name, const void *lock,
                             enum lockdep_kind kind, u32 caller)
{
    if (reporting)
        return;
    u32 class = find_class(name, kind);
    u32 flags = irq_save();
    push(class, lock, kind, call_trace_caller(caller));
    irq_restore(flags);
}

void lockdep_release(const void *lock, enum lockdep_kind kind)
{
    if (reporting)
        return;
    u32 flags = irq_save();
    struct lockdep_stack *s = stack_of(kind);
    u32 i = s->depth;
    while (i && s->held[i - 1].lock != lock)
        i--;
    if (!i)
        panic("lockdep: %p is released, but not held here", lock);
    for (; i < s->depth; i++)
        s->held[i - 1] = s->held[i];
    s->depth--;
    irq_restore(flags);
}

void lockdep_may_sleep(const char *what)
{
    if (reporting)
        return;
    // Interrupts off, so that all counts are of the CPU the thread runs on.
    u32 flags = irq_save();
    struct cpu *c = this_cpu();
    int preempt_count = c->preempt_count;
    u32 irq_depth = c->irq_depth;
    irq_restore(flags);
    if (!preempt_count && !irq_depth && irqs_enabled())
        return;
    struct lockdep_stack *s = &cpu_held[c->id];
    for (u32 i = 0; i < s->depth; i++)
        print_lock("holds", s->held[i].class, s->held[i].caller);
    panic("lockdep: may sleep for '%s' in atomic context (preempt count %d, "
          "irq depth %u, interrupts %s)",
          what, preempt_count, irq_depth, irqs_enabled() ? "on" : "off");
}

static void none_held(const struct lockdep_stack *s, const char *where)
{
    for (u32 i = 0; i < s->depth; i++)
        print_lock("holds", s->held[i].class, s->held[i].caller);
    if (s->depth)
        panic("lockdep: %s with %u locks held", where, s->depth);
}

void lockdep_none_held(const char *where)
{
    none_held(current_base()->mutexes, where);
}

void lockdep_user_mode(void)
{
    static const char where[] = "a thread goes back to user mode";
    assert(!irqs_enabled());
    const struct cpu *c = this_cpu();
    none_held(current_base()->mutexes, where);
    none_held(&cpu_held[c->id], where);
    if (c->preempt_count)
        panic("lockdep: %s with preempt count %d", where, c->preempt_count);
}

void lockdep_not_held(const char *name, bool by_others, u32 taken, u32 caller)
{
    reporting = true;
    u32 offset = 0;
    const char *where = ksym_lookup(taken, &offset);
    log_printf("lockdep: '%s' is %s, taken last at %08x %s+%#x\n", name,
               by_others ? "held elsewhere" : "not held", taken,
               where ? where : "?", offset);
    where = ksym_lookup(caller, &offset);
    panic("lockdep: '%s' must be held in %s", name, where ? where : "?");
}

NOTRACE void lockdep_spinlocks(u32 cpu, struct lockdep_stack *out)
{
    *out = cpu_held[cpu];
}

void lockdep_print(const char *what, const struct lockdep_stack *s)
{
    for (u32 i = 0; i < MIN(s->depth, (u32)LOCKDEP_HELD_MAX); i++) {
        const struct lockdep_held *h = &s->held[i];
        u32 offset = 0;
        const char *name = ksym_lookup(h->caller, &offset);
        console_printf("  %s '%s', taken at %08x %s+%#x\n", what,
                       classes[h->class].name, h->caller, name ? name : "?",
                       offset);
    }
}

#endif
