// Call paths: what the stubs do rarely, and context switches and interrupts.
//
// Each CPU has its own nodes. A thread's frames name nodes of the CPU where it
// runs: when it comes to another one, they are looked up there. At any moment
// one node of each CPU is open, that of its innermost frame; so `own` and
// `tracing` of all nodes of a CPU add up to the time of the trace.
//
// All of this runs on its own CPU with interrupts off. None of it has a
// patchable entry. NMIs only read frames (stacks.c).
#include "arch/cpu.h"
#include "kernel/base/log.h"
#include "kernel/sched/thread.h"
#include "kernel/trace/calls.h"
#include "kernel/trace/record.h"
#include "lib/cpu_memory.h"

struct branch call_tracing;
struct call_trace call_trace;
const struct trace_place call_untraced;

static struct call_node nothing; // the last child of nodes without children
static struct call_node *unused[CPU_MAX]; // what is not traced is charged to it
CPU_MEMORY(unused, 1);

// --- nodes ------------------------------------------------------------------

// As in stubs.S.
static struct call_node **bucket(const struct call_cpu *c,
                                 const struct call_node *parent, u32 function)
{
    u32 n = ((u32)parent + 2 * function) >> 1 & c->bucket_mask;
    return (struct call_node **)((char *)c->buckets + n);
}

static void init_node(struct call_node *n, struct call_node *parent,
                      u32 function)
{
    *n = (struct call_node){
        .function = function,
        .last = &nothing,
        .parent = parent,
        .shortest = -1u,
    };
}

static struct call_node *new_node(struct call_cpu *c, struct call_node *parent,
                                  u32 function)
{
    if (c->nodes_used == c->most)
        return NULL;
    struct call_node *n = &c->nodes[c->nodes_used++];
    struct call_node **chain = bucket(c, parent, function);
    init_node(n, parent, function);
    n->next = *chain;
    *chain = n;
    return n;
}

struct call_node *call_trace_new_node(struct call_node *parent, u32 function)
{
    struct call_cpu *c = &this_cpu()->calls;
    struct call_node *n = new_node(c, parent, function);
    if (n)
        parent->last = n;
    else
        c->overflow++;
    return n;
}

static struct call_node *find_or_make(struct call_cpu *c,
                                      struct call_node *parent, u32 function)
{
    struct call_node *n = *bucket(c, parent, function);
    while (n && (n->function != function || n->parent != parent))
        n = n->next;
    return n ? n : new_node(c, parent, function);
}

void call_nodes_init(struct call_cpu *c)
{
    for (u32 i = 0; i < CALLS_ROOTS; i++)
        init_node(&c->nodes[i], &c->nodes[i], CALLS_ROOT_THREADS + i);
    c->nodes_used = CALLS_ROOTS;
}

static struct call_node *root(struct call_cpu *c, u32 function)
{
    return &c->nodes[function - CALLS_ROOT_THREADS];
}

// --- accounts ---------------------------------------------------------------

// Frames of trace_enter have no nodes: their thread's clock is all that counts.
static bool has_nodes(void)
{
    return call_trace.mode == CALLS_PATHS;
}

static void account_close(struct call_cpu *c, u64 now)
{
    if (has_nodes())
        c->top->node->own += now;
}

static void account_open(struct call_cpu *c, u64 now)
{
    if (has_nodes())
        c->top->node->own -= now;
}

// Drops the innermost frame, whose function has not returned.
static void drop(struct call_cpu *c, u64 now)
{
    account_close(c, now);
    c->top--;
    account_open(c, now);
}

void call_trace_drop_stale(u64 now, u32 mark)
{
    struct call_cpu *c = &this_cpu()->calls;
    while (c->top->mark <= mark)
        drop(c, now);
}

u32 call_trace_odd_return(u64 now, u32 mark)
{
    struct call_cpu *c = &this_cpu()->calls;
    struct call_stack *s = current_base()->traced;
    if (s && s->late_mark == mark) {
        s->late_mark = 0;
        return s->late_back;
    }
    while (c->top->mark < mark)
        drop(c, now);
    if (c->top->mark != mark)
        panic("call tracing: the return from a function whose return address "
              "was at %08x: unknown",
              mark + CALL_MARK);
    u32 back = c->top->back;
    drop(c, now);
    return back;
}

// --- context switches -------------------------------------------------------

// The same path among the nodes of this CPU. What has no node there is charged
// to the root.
static void move_frames(struct call_cpu *c, u32 cpu, struct call_stack *s)
{
    struct call_node *first = root(c, s->root), *parent = first;
    s->frames[0].node = first;
    for (struct call_frame *f = s->frames + 1; f <= s->top; f++) {
        struct call_node *n = find_or_make(c, parent, f->node->function);
        if (!n)
            c->overflow++;
        f->node = parent = n ? n : first;
    }
    s->cpu = cpu;
}

static void leave(struct call_cpu *c, u64 now)
{
    account_close(c, now);
    struct call_stack *s = c->stack;
    if (s) {
        s->top = c->top;
        s->clock = c->clock;
        s->left = now;
    }
    c->left = s;
}

// Without frames: what the stub counts or records in, until the next switch or
// interrupt. Else the stub of another trace, in which a thread was preempted,
// finds that there is none.
static void set_traced(struct call_cpu *c, bool traced)
{
    u32 mode = call_trace.mode;
    c->arcs = traced && mode == CALLS_ARCS ? c->all_arcs : NULL;
    c->place =
        traced && mode == CALLS_ENTRIES ? &c->ring->place : &call_untraced;
}

// Of the stub that this trace uses.
static struct call_frame **limit_of(struct call_cpu *c)
{
    return has_nodes() ? &c->limit : &c->event_limit;
}

// No function is traced until the next switch.
static void come_untraced(struct call_cpu *c, u32 cpu, u64 now)
{
    c->stack = NULL;
    *limit_of(c) = NULL;
    c->none.mark = -1u;
    c->none.node = call_trace.task || !has_nodes()
                       ? unused[cpu]
                       : root(c, CALLS_ROOT_THREADS);
    c->top = &c->none;
    account_open(c, now);
}

static bool is_chosen(const struct thread *t)
{
    return call_trace.task ? t->task == call_trace.task
                           : t->task != call_trace.except;
}

void call_trace_come(struct call_cpu *c, u32 cpu, const struct thread *t,
                     u64 now)
{
    struct call_stack *s = READ_ONCE(t->traced);
    set_traced(c, is_chosen(t));
    if (!calls_have_frames(call_trace.mode))
        return;
    if (!is_chosen(t) || !s) {
        c->no_frames += is_chosen(t);
        come_untraced(c, cpu, now);
        return;
    }
    if (has_nodes() && s->cpu != cpu)
        move_frames(c, cpu, s);
    c->stack = s;
    c->top = s->top;
    *limit_of(c) = s->frames + MIN(call_trace.depth, s->depth);
    c->clock = s->clock - (now - s->left);
    if (has_nodes())
        c->top->node->blocked += now - s->left;
    account_open(c, now);
}

void call_trace_switch(u64 now)
{
    struct cpu *cpu = this_cpu();
    struct call_cpu *c = &cpu->calls;
    if (!call_trace.running)
        return;
    if (calls_have_frames(call_trace.mode))
        leave(c, now);
    call_trace_come(c, cpu->id, current, now);
}

void call_trace_switched(void)
{
    this_cpu()->calls.left = NULL;
}

void call_trace_enter_user(void)
{
    struct call_cpu *c = &this_cpu()->calls;
    if (call_trace.running && c->stack)
        call_trace_drop_stale(rdtsc(), -2u); // all but the root
}

// --- interrupts -------------------------------------------------------------

static bool is_outside(u32 pc)
{
    const u32 *range = trace_outside;
    while (range < trace_outside_end && pc - range[0] >= range[1] - range[0])
        range += 2;
    return range < trace_outside_end;
}

// The stub may be in the middle of adding to these sums. It adds to each half
// in one instruction, the carry is in its flags, and so the order of both
// additions does not matter.
void call_trace_nmi(u32 pc, u32 spent)
{
    struct call_cpu *c = &this_cpu()->calls;
    if (!call_trace.running || !has_nodes() || !is_outside(pc))
        return;
    c->top->node->own -= spent;
    c->top->node->tracing += spent;
    c->clock -= spent;
}

// An interrupt is no call by what it interrupts: it has a frame and a root of
// its own. Handlers run with interrupts off, so there is one at a time.
void call_trace_interrupt(struct call_cpu *c, const struct trapframe *tf,
                          u64 now)
{
    if (call_trace.task)
        set_traced(c, false);
    if (!c->stack)
        return;
    account_close(c, now);
    struct call_frame *f = c->top + 1;
    *f = (struct call_frame){
        .mark = (u32)tf,
        .back = (u32)*limit_of(c),
        .start = c->clock + now,
    };
    if (has_nodes())
        f->node = root(c, CALLS_ROOT_INTERRUPTS);
    else
        f->function = CALLS_ROOT_INTERRUPTS;
    c->irq_began = now;
    *limit_of(c) = call_trace.task
                       ? NULL
                       : f + MIN(call_trace.depth, CALL_SPARE_FRAMES - 1);
    if (has_nodes())
        f->node->calls++;
    c->top = f;
    account_open(c, now);
}

void call_trace_irq_begin(const struct trapframe *tf, u64 now)
{
    if (call_trace.running)
        call_trace_interrupt(&this_cpu()->calls, tf, now);
}

void call_trace_irq_end(const struct trapframe *tf, u64 now)
{
    struct cpu *cpu = this_cpu();
    struct call_cpu *c = &cpu->calls;
    if (!call_trace.running)
        return;
    if (!calls_have_frames(call_trace.mode))
        set_traced(c, is_chosen(current));
    if (!c->stack)
        return;
    while (c->top->mark < (u32)tf)
        drop(c, now);
    const struct call_frame *f = c->top;
    if (f->mark != (u32)tf) // the stack was given to the thread meanwhile
        return;
    drop(c, now);
    *limit_of(c) = (struct call_frame *)f->back;
    c->clock = f->start - now;
    if (has_nodes())
        c->top->node->interrupted += now - c->irq_began;
}
