// One sample: from the interrupt to the rings of the sessions that want it.
//
// Interrupts are off. No lock, no allocation, no fault; it may be an NMI. The
// record is built where it will stay, in the ring; at the ring's end in memory
// of this CPU, one for each level: an NMI may come while a maskable source's
// sample is under way. (They never share a ring: a session has one source.)

#include "arch/cpu.h"
#include "arch/trap.h"
#include "arch/unwind.h"
#include "kernel/profile/session_private.h"
#include "kernel/sched/task.h"

// Sampling may take a quarter of a CPU, looked at over this part of a second.
#define THROTTLE_PARTS 4
#define WINDOWS_PER_SECOND 100

struct record {
    struct sprofile_sample sample;
    u32 words[2 * SPROFILE_FRAMES_MAX + 2 + SPROFILE_STACK_WORDS + 1];
};

static struct level {
    struct record record;
    u32 window, spent; // the throttle: TSC, low half; cycles
} levels[CPU_MAX][2];

static u32 window_cycles; // while a source runs

struct hit {
    const struct trapframe *tf;
    struct thread *thread;
    enum sample_mode mode;
    u32 cpu, ticks;
    u64 period, time;
};

void sample_start_throttle(void)
{
    window_cycles = (u32)clock_tsc_hz() / WINDOWS_PER_SECOND;
}

static ALWAYS_INLINE enum sample_mode
mode_of(const struct sample_source *source, const struct trapframe *tf)
{
    if (trap_from_user(tf))
        return MODE_USER;
    // A maskable source's own interrupt is the innermost.
    if (this_cpu()->irq_depth > !source->nmi)
        return MODE_IRQ;
    return current->tid ? MODE_KERNEL : MODE_IDLE; // idle threads have no id
}

// An interrupt is nobody's: the ledger books it to its vector.
static ALWAYS_INLINE bool wanted(const struct session *s, const struct hit *h)
{
    const struct task *task = h->thread->task;
    if (!s->task)
        return task != s->profiler;
    return h->mode != MODE_IRQ && READ_ONCE(task->sessions) & 1u << s->slot;
}

static ALWAYS_INLINE void fill(struct record *r, const struct hit *h)
{
    static const u8 flags[MODES] = {
        [MODE_KERNEL] = SPROFILE_F_KERNEL,
        [MODE_IRQ] = SPROFILE_F_KERNEL | SPROFILE_F_IRQ,
        [MODE_IDLE] = SPROFILE_F_KERNEL | SPROFILE_F_IDLE,
    };
    struct sprofile_sample *s = &r->sample;
    s->head.type = SPROFILE_R_SAMPLE;
    s->head.size = offsetof(struct record, words[1]);
    s->head.cpu = (u16)h->cpu;
    s->head.flags = flags[h->mode];
    if (!(h->tf->eflags & EFLAGS_IF))
        s->head.flags |= SPROFILE_F_IRQS_OFF;
    s->head.time = h->time;
    s->task = h->thread->task->id;
    s->thread = h->thread->tid;
    s->period = h->period;
    s->kernel_depth = h->mode != MODE_USER;
    s->user_depth = h->mode == MODE_USER;
    s->stack_words = s->reserved = 0;
    r->words[0] = h->tf->eip;
}

// The chains, kernel and user, and the top of the user's stack.
static void unwind(struct record *r, const struct hit *h)
{
    struct sprofile_sample *s = &r->sample;
    struct user_context user;
    u32 *at = r->words, n;
    if (h->mode != MODE_USER) {
        bool cut;
        n = unwind_kernel(h->tf, at, SPROFILE_FRAMES_MAX, &cut);
        s->kernel_depth = (u8)n;
        at += n;
        if (cut)
            s->head.flags |= SPROFILE_F_KERNEL_CUT;
    }
    if (unwind_user_context(h->tf, &user)) {
        struct user_peek p;
        enum unwind_end end;
        user_peek_begin(&p);
        u32 words = user_stack_top(&p, user.esp, at + 2, SPROFILE_STACK_WORDS);
        u32 *chain = at + 2 + words;
        at[0] = user.esp;
        n = unwind_user(&p, &user, at + 2, words, chain, SPROFILE_FRAMES_MAX,
                        &at[1], &end);
        user_peek_end(&p);
        s->stack_words = (u8)(2 + words);
        s->user_depth = (u8)n;
        at = chain + n;
        if (end == UNWIND_CUT)
            s->head.flags |= SPROFILE_F_USER_CUT;
        else if (end == UNWIND_GAP)
            s->head.flags |= SPROFILE_F_USER_GAP;
    }
    if ((at - r->words + sizeof(*s) / 4) & 1)
        *at++ = 0;
    s->head.size = (u16)((u8 *)at - (u8 *)r);
}

static NOINLINE bool tell_lost(struct session_cpu *c, const struct hit *h)
{
    struct sprofile_lost lost = {
        { SPROFILE_R_LOST, sizeof(lost), (u16)h->cpu, 0, h->time },
        c->lost_since,
    };
    if (!ring_write(&c->ring, &lost, sizeof(lost)))
        return false;
    c->lost_since = 0;
    return true;
}

static void store(struct session *s, struct session_cpu *c, const struct hit *h,
                  struct record *spare)
{
    bool stacks = s->flags & SPROFILE_O_STACKS;
    u32 room =
        stacks ? sizeof(struct record) : offsetof(struct record, words[1]);
    bool full = unlikely(c->lost_since) && !tell_lost(c, h);
    struct record *in_place = full ? NULL : ring_reserve(&c->ring, room);
    struct record *r = in_place ? in_place : spare;
    fill(r, h);
    if (stacks)
        unwind(r, h);
    counter_add(&c->taken[h->mode], 1);
    if (unlikely(h->ticks > 1))
        counter_add(&c->missed, h->ticks - 1);
    if (unlikely(r->sample.head.flags &
                 (SPROFILE_F_IRQS_OFF | SPROFILE_F_USER_CUT))) {
        if (r->sample.head.flags & SPROFILE_F_IRQS_OFF)
            counter_add(&c->irqs_off, 1);
        if (r->sample.head.flags & SPROFILE_F_USER_CUT)
            counter_add(&c->unreadable, 1);
    }
    if (likely(in_place)) {
        ring_commit(&c->ring, r->sample.head.size);
    } else if (full || !ring_write(&c->ring, r, r->sample.head.size)) {
        c->lost_since++;
        counter_add(&c->lost, 1);
    }
}

// True when sampling has had its share of this stretch of time.
static ALWAYS_INLINE bool throttled(struct level *l, u32 now)
{
    if (now - l->window >= window_cycles) {
        l->window = now;
        l->spent = 0;
    }
    return l->spent > window_cycles / THROTTLE_PARTS;
}

void sample_take(const struct sample_source *source, const struct trapframe *tf,
                 u32 ticks, u64 period)
{
    u64 began = rdtsc();
    u32 last = (u32)began, cpu = this_cpu()->id;
    struct level *l = &levels[cpu][source->nmi];
    struct hit h = {
        tf, current, mode_of(source, tf), cpu, ticks, period, began
    };
    if (unlikely(READ_ONCE(bins_source) == source))
        bins_sample(tf, ticks);
    bool skip = throttled(l, last);
    for (u32 used = READ_ONCE(slots_used); used; used &= used - 1) {
        struct session *s = READ_ONCE(slots[__builtin_ctz(used)]);
        if (!s || s->source != source || READ_ONCE(s->paused))
            continue;
        struct session_cpu *c = &s->cpu[cpu];
        if (unlikely(skip))
            counter_add(&c->throttled, ticks);
        else if (wanted(s, &h))
            store(s, c, &h, &l->record);
        else
            counter_add(&c->others, ticks);
        u32 now = (u32)rdtsc();
        counter_add(&c->cycles, now - last);
        last = now;
    }
    l->spent += last - (u32)began;
}
