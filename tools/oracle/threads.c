// Threads, and the frames of their paths (oracle.h).
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FOR_SIGNAL 256 // smaller than a signal frame

struct cpu cpus[CPU_MAX];

#define SLOT_HASH 4096
static struct thread *sleepers[SLOT_HASH];
static struct birth *births;
static struct thread *threads; // all
static u32 thread_count;

static void push(struct frames *f, u32 slot, enum node_kind kind,
                 struct node *before)
{
    if (f->count == f->room) {
        f->room = f->room ? 2 * f->room : 64;
        f->list = enough(realloc(f->list, f->room * sizeof(*f->list)));
    }
    f->list[f->count++] =
        (struct frame){ .slot = slot, .kind = (u8)kind, .before = before };
}

static struct frames copy(const struct frames *f)
{
    struct frames c = { NULL, f->count, f->count };
    if (f->count) {
        c.list = enough(malloc(f->count * sizeof(*c.list)));
        memcpy(c.list, f->list, f->count * sizeof(*c.list));
    }
    return c;
}

// Removes frames from `count` on; the node before them becomes *node.
static void cut_to(struct frames *f, u32 count, struct node **node)
{
    if (count >= f->count)
        return;
    *node = f->list[count].before;
    f->count = count;
}

struct thread *thread_new(const char *name)
{
    struct thread *t = enough(calloc(1, sizeof(*t)));
    t->number = thread_count++;
    t->node = root(name, t->number);
    t->older = threads;
    threads = t;
    return t;
}

static void fold_node(struct node **n)
{
    if (*n && (*n)->into)
        *n = (*n)->into;
}

static void fold_frames(struct frames *f)
{
    for (u32 i = 0; i < f->count; i++)
        fold_node(&f->list[i].before);
}

void threads_fold(void)
{
    for (struct thread *t = threads; t; t = t->older) {
        fold_frames(&t->user);
        fold_frames(&t->kernel);
        fold_node(&t->node);
        fold_node(&t->user_node);
    }
    for (struct birth *b = births; b; b = b->next) {
        fold_frames(&b->user);
        fold_node(&b->user_node);
    }
}

// --- user frames ------------------------------------------------------------

// A thread of fork's kind continues its creator's path; one on a stack of its
// own does not.
static void settle_fork(struct thread *t, u32 slot, bool returns)
{
    t->forked = false;
    u32 top = t->user.count ? t->user.list[t->user.count - 1].slot : 0;
    bool same = returns ? slot == top : slot < top && top - slot < 4096;
    if (same)
        return;
    t->user.count = 0;
    t->user_node = root("thread", t->number);
}

// Index of the first frame that a CALL at `slot` shows to be gone. A signal's
// frame is gone if an older frame is, or if the stack has grown by more than
// its size.
static u32 first_gone(const struct frames *f, u32 slot)
{
    u32 first = f->count;
    for (u32 i = f->count; i-- > 0;) {
        const struct frame *g = &f->list[i];
        if (g->kind == NODE_SIGNAL) {
            if (g->slot && slot > g->slot + ROOM_FOR_SIGNAL)
                first = i;
        } else if (g->slot <= slot) {
            first = i;
        } else {
            break;
        }
    }
    return first;
}

void user_call(struct thread *t, u32 slot, u32 site)
{
    if (t->forked)
        settle_fork(t, slot, false);
    cut_to(&t->user, first_gone(&t->user, slot), &t->user_node);
    u32 n = t->user.count;
    if (n && t->user.list[n - 1].kind == NODE_SIGNAL &&
        !t->user.list[n - 1].slot)
        t->user.list[n - 1].slot = slot;
    push(&t->user, slot, NODE_CALL, t->user_node);
    t->user_node = child(t->user_node, NODE_CALL, site, 0);
}

void user_return(struct thread *t, u32 slot)
{
    if (t->forked)
        settle_fork(t, slot, true);
    for (u32 i = t->user.count; i-- > 0;) {
        const struct frame *f = &t->user.list[i];
        if (f->kind == NODE_SIGNAL)
            continue;
        if (f->slot == slot) {
            cut_to(&t->user, i, &t->user_node);
            return;
        }
        if (f->slot > slot)
            break;
    }
}

// --- kernel frames ----------------------------------------------------------

static void sleep_at(struct thread *t, u32 slot)
{
    struct thread **head = &sleepers[slot / 4 % SLOT_HASH];
    t->sleeps_at = slot;
    t->next = *head;
    *head = t;
}

static struct thread *wake_at(u32 slot)
{
    for (struct thread **p = &sleepers[slot / 4 % SLOT_HASH]; *p;
         p = &(*p)->next) {
        struct thread *t = *p;
        if (t->sleeps_at == slot) {
            *p = t->next;
            return t;
        }
    }
    return NULL;
}

static struct thread *born_at(u32 slot)
{
    for (struct birth **p = &births; *p; p = &(*p)->next) {
        struct birth *b = *p;
        if (b->slot != slot)
            continue;
        *p = b->next;
        struct thread *t = thread_new(b->fork ? "task" : "kernel thread");
        t->user = b->user;
        t->user_node = b->user_node;
        t->forked = b->fork;
        free(b);
        return t;
    }
    return NULL;
}

void kernel_call(struct thread *t, u32 slot, u32 site)
{
    u32 n = t->kernel.count;
    while (n && t->kernel.list[n - 1].kind == NODE_CALL &&
           t->kernel.list[n - 1].slot <= slot)
        n--;
    cut_to(&t->kernel, n, &t->node);
    push(&t->kernel, slot, NODE_CALL, t->node);
    t->node = child(t->node, NODE_CALL, site, 0);
}

void thread_born(struct thread *t, u32 slot, bool fork)
{
    struct birth *b = enough(calloc(1, sizeof(*b)));
    b->slot = slot;
    b->fork = fork;
    if (fork && t->user_node) {
        b->user = copy(&t->user);
        b->user_node = t->user_node;
    }
    b->next = births;
    births = b;
}

// The idle thread's path continues that of the thread which waits. Frames that
// were folded into their caller's node stay so.
static void begin_idle(struct thread *idle, struct node *waits)
{
    struct node *n = idle_after(waits);
    const struct node *caller = NULL;
    for (u32 i = 0; i <= idle->kernel.count; i++) {
        struct node **at =
            i < idle->kernel.count ? &idle->kernel.list[i].before : &idle->node;
        const struct node *old = *at;
        if (i > 0 && old != caller) {
            if (old->kind == NODE_ROOT)
                return; // an interrupt in the idle thread
            n = child(n, old->kind, old->site, old->vector);
        }
        caller = old;
        *at = n;
    }
}

// A return address that is not the innermost frame's is on another thread's
// stack.
void kernel_return(struct cpu *c, u32 slot)
{
    struct thread *t = c->thread;
    for (u32 i = t->kernel.count; i-- > 0;) {
        const struct frame *f = &t->kernel.list[i];
        if (f->kind != NODE_CALL)
            break;
        if (f->slot == slot) {
            cut_to(&t->kernel, i, &t->node);
            return;
        }
    }
    struct thread *next = born_at(slot);
    if (!next) {
        next = wake_at(slot);
        if (!next)
            return;
        u32 n = next->kernel.count;
        if (n)
            cut_to(&next->kernel, n - 1, &next->node);
    }
    if (t->kernel.count)
        sleep_at(t, t->kernel.list[t->kernel.count - 1].slot);
    if (next == c->first)
        begin_idle(next, t->node);
    c->thread = next;
}

static struct node *interrupts[256];

void enter(struct cpu *c, u32 vector, u32 site)
{
    struct thread *t = c->thread;
    struct node *from = c->in_user ? t->user_node : t->node;
    if (c->in_user)
        t->left_at = site;
    push(&t->kernel, site, NODE_ENTRY, t->node);
    t->kernel.list[t->kernel.count - 1].user = c->in_user;
    if ((vector >= 32 && vector != SYSCALL_VECTOR) || vector == NMI_VECTOR) {
        if (!interrupts[vector])
            interrupts[vector] = root("interrupt", vector);
        t->node = interrupts[vector];
    } else {
        t->node = child(from, NODE_ENTRY, site, vector);
    }
    c->in_user = false;
}

// An NMI may come when the CPU has entered the kernel, but before its first
// instruction: so it seems to interrupt the code before the entry, and its
// return to the entry is a second one, from the same code.
u32 leave(struct cpu *c, u32 site)
{
    struct thread *t = c->thread;
    if (c->reads >= 4) { // of EIP, CS, EFLAGS, and ESP: to user mode
        if (t->kernel.count)
            cut_to(&t->kernel, 0, &t->node);
        c->in_user = true;
        check_clock();
        if (t->execed || !t->user_node) {
            t->user.count = 0;
            t->user_node = root("program", t->number);
            t->forked = false;
        }
        if (t->signalled) {
            push(&t->user, 0, NODE_SIGNAL, t->user_node);
            t->user_node = child(t->user_node, NODE_SIGNAL, t->left_at, 0);
        }
        if (t->left_signal) {
            for (u32 i = t->user.count; i-- > 0;) {
                if (t->user.list[i].kind == NODE_SIGNAL) {
                    cut_to(&t->user, i, &t->user_node);
                    break;
                }
            }
        }
        t->execed = t->signalled = t->left_signal = false;
        return site;
    }
    for (u32 i = t->kernel.count; i-- > 0;) {
        const struct frame *f = &t->kernel.list[i];
        if (f->kind == NODE_ENTRY) {
            c->in_user = f->user;
            cut_to(&t->kernel, i, &t->node);
            return f->slot;
        }
    }
    return site;
}
