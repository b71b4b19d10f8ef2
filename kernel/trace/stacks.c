// Call stacks: the frames of the traced calls of each thread.
//
// `stacks_lock`, which is taken with interrupts off, guards the list of stacks
// and which thread has which; while the machine is stopped nobody holds it. A
// stack is written by the CPU that runs its thread, with interrupts off, and
// read by NMIs of that CPU.
//
// When a trace ends, all return addresses are restored where they lie. Only a
// thread that was interrupted on the first instructions of an exit stub has
// taken its return address from the stack already: it returns later, by
// `late_mark`.
#include "arch/cpu.h"
#include "arch/mmu.h"
#include "arch/text.h"
#include "kernel/base/log.h"
#include "kernel/debug/kasan.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/trace/calls.h"

static struct spinlock stacks_lock = SPINLOCK_INIT("call stacks");
static struct list stacks = LIST_INIT(stacks);

// --- giving and taking ------------------------------------------------------

struct call_stack *call_stack_alloc(u32 depth)
{
    u32 frames = 1 + depth + CALL_SPARE_FRAMES + 1; // one for trace_leave
    struct call_stack *s = kzalloc(sizeof(*s) + frames * sizeof(s->frames[0]));
    if (s) {
        list_init(&s->node);
        s->depth = depth;
    }
    return s;
}

void call_stack_free(struct call_stack *s)
{
    kfree(s);
}

// Empty, and not of the time before `now`.
static void clear(struct call_stack *s, u64 now)
{
    s->frames[0] = (struct call_frame){ .mark = -1u };
    s->top = s->frames;
    s->cpu = CPU_MAX;
    s->clock = -now;
    s->left = now;
}

bool call_stack_give(struct thread *t, struct call_stack *s, u32 root)
{
    u32 flags = spin_lock_irq(&stacks_lock);
    bool has = t->traced;
    if (!has) {
        s->thread = t;
        s->root = root;
        clear(s, rdtsc());
        list_push_back(&stacks, &s->node);
        WRITE_ONCE(t->traced, s);
    }
    spin_unlock_irq(&stacks_lock, flags);
    return !has;
}

void call_stack_new_thread(struct thread *t)
{
    u32 depth = READ_ONCE(call_trace.depth);
    const struct task *task = READ_ONCE(call_trace.task);
    if (!branch_on(&call_tracing) || !depth || (task && t->task != task))
        return;
    struct call_stack *s = call_stack_alloc(depth);
    if (s && !call_stack_give(t, s, CALLS_ROOT_THREADS))
        call_stack_free(s);
}

// The trace may end concurrently, and then call_stacks_free frees the stack.
void call_stack_take(struct thread *t)
{
    if (!READ_ONCE(t->traced))
        return;
    u32 flags = spin_lock_irq(&stacks_lock);
    struct call_stack *s = t->traced;
    if (s) {
        list_remove(&s->node);
        t->traced = NULL;
    }
    spin_unlock_irq(&stacks_lock, flags);
    call_stack_free(s);
}

void call_stacks_free(void)
{
    struct list unused = LIST_INIT(unused);
    struct call_stack *s, *next;
    u32 flags = spin_lock_irq(&stacks_lock);
    list_for_each_safe(s, next, &stacks, node) {
        if (s->late_mark)
            continue;
        list_remove(&s->node);
        WRITE_ONCE(s->thread->traced, NULL);
        list_push_back(&unused, &s->node);
    }
    spin_unlock_irq(&stacks_lock, flags);
    list_for_each_safe(s, next, &unused, node)
        call_stack_free(s);
}

// --- the machine is stopped -------------------------------------------------

void call_stacks_begin(u64 now)
{
    struct call_stack *s;
    list_for_each(s, &stacks, node)
        clear(s, now);
    for (u32 i = 0; i < cpu_count; i++) {
        struct call_cpu *c = &cpus[i]->calls;
        c->left = NULL;
        call_trace_come(c, i, cpus[i]->thread, now);
        if (cpus[i]->irq_depth)
            call_trace_interrupt(c, cpus[i]->irq_frame, now);
    }
}

static bool is_interrupt(const struct call_frame *f)
{
    u32 function =
        call_trace.mode == CALLS_EVENTS ? f->function : f->node->function;
    return function == CALLS_ROOT_INTERRUPTS;
}

// The CPU that runs the thread, or NULL.
static struct cpu *running_on(const struct call_stack *s)
{
    for (u32 i = 0; i < cpu_count; i++) {
        if (cpus[i]->calls.stack == s)
            return cpus[i];
    }
    return NULL;
}

static struct call_frame *top_of(const struct call_stack *s)
{
    const struct cpu *cpu = running_on(s);
    return cpu ? cpu->calls.top : s->top;
}

// Where the stack of the thread ends: an interrupt's frame, or `sp`.
static u32 stack_pointer(const struct call_stack *s, u32 sp)
{
    const struct cpu *cpu = running_on(s);
    if (!cpu)
        return arch_stack_pointer(&s->thread->arch);
    return cpu->irq_depth ? (u32)cpu->irq_frame : sp;
}

// Restores the return address of `f`, and of those that share it (tail calls).
// Returns the outermost of them. `sp` 0: nothing is known of the stack's end.
static NO_KASAN struct call_frame *restore(struct call_stack *s,
                                           struct call_frame *f, u32 sp)
{
    u32 *slot = (u32 *)(f->mark + CALL_MARK);
    while (f[-1].mark == f->mark && call_trace_is_exit(f->back))
        f--;
    if ((u32)slot < sp)
        return f; // its function never returned
    if (call_trace_is_exit(*slot)) {
        *slot = f->back;
    } else if (sp) {
        s->late_mark = f->mark;
        s->late_back = f->back;
    }
    return f;
}

void call_stacks_end(u32 sp)
{
    struct call_stack *s;
    list_for_each(s, &stacks, node) {
        struct call_frame *f = top_of(s), *interrupt = f;
        while (interrupt > s->frames && !is_interrupt(interrupt))
            interrupt--;
        for (; f > interrupt && interrupt > s->frames; f--)
            f = restore(s, f, 0);
        f = interrupt > s->frames ? interrupt - 1 : top_of(s);
        for (; f > s->frames; f--)
            f = restore(s, f, stack_pointer(s, sp));
    }
    for (u32 i = 0; i < cpu_count; i++) {
        struct call_cpu *c = &cpus[i]->calls;
        c->stack = c->left = NULL;
        c->limit = c->event_limit = NULL;
        c->arcs = NULL;
        c->place = &call_untraced;
        c->none.mark = -1u;
        c->top = &c->none;
    }
}

void call_stacks_count_open(void)
{
    struct call_stack *s;
    for (u32 i = 0; i < cpu_count; i++) {
        struct call_cpu *c = &cpus[i]->calls;
        for (u32 n = 0; n < c->nodes_used; n++)
            c->nodes[n].open = 0;
    }
    list_for_each(s, &stacks, node) {
        for (struct call_frame *f = top_of(s); f > s->frames; f--)
            f->node->open++;
    }
}

void call_stacks_charge(u64 now, s64 sign)
{
    struct call_stack *s;
    for (u32 i = 0; i < cpu_count; i++) {
        struct call_cpu *c = &cpus[i]->calls;
        c->top->node->own += now * (u64)sign;
        for (struct call_frame *f = c->top; c->stack && f > c->stack->frames;
             f--) {
            if (is_interrupt(f))
                f[-1].node->interrupted += (now - c->irq_began) * (u64)sign;
        }
    }
    list_for_each(s, &stacks, node) {
        bool waits = !running_on(s) && s->thread->state != THREAD_DEAD;
        if (waits && s->cpu < CPU_MAX)
            s->top->node->blocked += (now - s->left) * (u64)sign;
    }
}

void call_stacks_restart(u64 now)
{
    struct call_stack *s;
    for (u32 i = 0; i < cpu_count; i++) {
        cpus[i]->calls.top->node->own -= now;
        cpus[i]->calls.irq_began = now;
    }
    list_for_each(s, &stacks, node) {
        if (!running_on(s)) {
            s->clock -= now - s->left;
            s->left = now;
        }
    }
}

// --- reading stacks ---------------------------------------------------------

// The innermost frame from `f` outwards with this mark, or NULL.
static const struct call_frame *find(const struct call_frame *f, u32 mark)
{
    while (f && f->mark != -1u && f->mark != mark)
        f--;
    return f && f->mark == mark ? f : NULL;
}

// Tail calls: several frames have the same mark, and the outermost of them has
// the real return address.
static const struct call_frame *find_slot(u32 slot)
{
    const struct call_cpu *c = &this_cpu()->calls;
    const struct call_stack *left = c->left;
    const struct call_frame *f = find(c->top, slot - CALL_MARK);
    if (!f && left) // in the middle of the switch
        f = find(left->top, slot - CALL_MARK);
    return f;
}

u32 call_trace_back(u32 slot)
{
    const struct call_stack *s = current_base()->traced;
    const struct call_frame *f = find_slot(slot);
    while (f && call_trace_is_exit(f->back))
        f = find(f - 1, f->mark);
    if (f)
        return f->back;
    return s && s->late_mark == slot - CALL_MARK ? s->late_back : 0;
}

u32 call_trace_function(u32 slot, u32 index)
{
    const struct call_frame *f = find_slot(slot);
    for (; f && index; index--)
        f = call_trace_is_exit(f->back) ? find(f - 1, f->mark) : NULL;
    if (!f)
        return 0;
    return call_trace.mode == CALLS_EVENTS ? moved_address(f->function)
                                           : f->node->function - TEXT_SITE;
}

// The caller has no frame: the innermost one is of the function that jumped to
// it.
u32 call_trace_caller(u32 back)
{
    if (!call_trace_is_exit(back))
        return back;
    u32 flags = irq_save();
    const struct call_frame *f = this_cpu()->calls.top;
    while (call_trace_is_exit(f->back) && f->mark != -1u)
        f--;
    back = f->back;
    irq_restore(flags);
    return back;
}
