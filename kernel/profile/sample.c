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

// One for each level of each CPU; no line of it is another CPU's.
static struct record spares[CPU_MAX][2];
static struct {
    struct throttle {
        u32 window, spent; // TSC, low half; cycles
    } of[2];
} __attribute__((aligned(64))) throttles[CPU_MAX];

static u32 window_cycles, spent_max; // set before the first source starts

u32 sample_room(u32 flags)
{
    return flags & SPROFILE_O_STACKS ? sizeof(struct record)
                                     : offsetof(struct record, words[1]);
}

void sample_start_throttle(void)
{
    if (window_cycles)
        return; // others may be sampling by it
    window_cycles = (u32)clock_tsc_hz() / WINDOWS_PER_SECOND;
    spent_max = window_cycles / THROTTLE_PARTS;
}

// One interrupt, as all sessions see it. Handed on by value where a call is
// not inlined: so it has no address, and can be in registers.
struct hit {
    const struct trapframe *tf;
    u64 time, period;
    u32 ticks, cpu, mode, flags;
    u32 task, thread; // ids
    u32 targets_of;   // the sessions whose target has been hit, a bit for each
};

static enum sample_mode kernel_mode(const struct trapframe *tf)
{
    // A maskable interrupt of the source's own is the innermost: `tf` is what
    // that has interrupted.
    if (this_cpu_read(irq_depth) > (tf == this_cpu_read(irq_frame)))
        return MODE_IRQ;
    // Idle threads have no id.
    return READ_ONCE(current->tid) ? MODE_KERNEL : MODE_IDLE;
}

static void describe_kernel(struct hit *h)
{
    static const u32 flags[MODES] = {
        [MODE_KERNEL] = SPROFILE_F_KERNEL,
        [MODE_IRQ] = SPROFILE_F_KERNEL | SPROFILE_F_IRQ,
        [MODE_IDLE] = SPROFILE_F_KERNEL | SPROFILE_F_IDLE,
    };
    h->mode = kernel_mode(h->tf);
    h->flags = flags[h->mode];
    if (!(h->tf->eflags & EFLAGS_IF))
        h->flags |= SPROFILE_F_IRQS_OFF;
    if (h->mode == MODE_IRQ) // nobody's: the ledger books it to its vector
        h->targets_of = 0;
}

// (No task is a target of a system session.)
static ALWAYS_INLINE bool wanted(const struct session *s, const struct hit *h)
{
    if (likely(h->targets_of >> s->slot & 1))
        return true;
    return !s->task && current->task != s->profiler;
}

// Whole words at a time, in this order: a sample without stacks.
#define PLAIN_SIZE offsetof(struct record, words[1])
#define FLAGS_SHIFT 16
#define SIZE_SHIFT 16
#define USER_DEPTH_SHIFT 16
_Static_assert(offsetof(struct sprofile_record, size) == 2 &&
                   offsetof(struct sprofile_record, cpu) == 4 &&
                   offsetof(struct sprofile_record, flags) == 6 &&
                   offsetof(struct sprofile_sample, kernel_depth) == 32 &&
                   offsetof(struct sprofile_sample, user_depth) == 34 &&
                   offsetof(struct sprofile_sample, pc) == 36,
               "fill writes these as words");

static ALWAYS_INLINE void fill(struct record *r, const struct hit *h)
{
    struct sprofile_sample *s = &r->sample;
    u32 *words = (u32 *)r;
    words[0] = SPROFILE_R_SAMPLE | PLAIN_SIZE << SIZE_SHIFT;
    words[1] = h->cpu | h->flags << FLAGS_SHIFT;
    s->head.time = h->time;
    s->task = h->task;
    s->thread = h->thread;
    s->period = h->period;
    words[8] = h->mode == MODE_USER ? 1 << USER_DEPTH_SHIFT : 1;
    s->pc[0] = h->tf->eip;
}

static NOINLINE u32 *unwind_kernel_part(struct sprofile_sample *s, u32 *at,
                                        const struct trapframe *tf)
{
    bool cut;
    u32 n = unwind_kernel(tf, at, SPROFILE_FRAMES_MAX, &cut);
    s->kernel_depth = (u8)n;
    if (cut)
        s->head.flags |= SPROFILE_F_KERNEL_CUT;
    return at + n;
}

// The chains, kernel and user, and the top of the user's stack.
static void unwind(struct record *r, const struct trapframe *tf)
{
    static const u16 end_flags[] = {
        [UNWIND_CUT] = SPROFILE_F_USER_CUT,
        [UNWIND_GAP] = SPROFILE_F_USER_GAP,
    };
    struct sprofile_sample *s = &r->sample;
    struct user_part user;
    u32 *at = r->words;
    if (!trap_from_user(tf))
        at = unwind_kernel_part(s, at, tf);
    u32 *end = unwind_user(tf, at, &user);
    if (likely(end)) {
        at = end;
        s->stack_words = (u8)user.stack_words;
        s->user_depth = (u8)user.depth;
        s->head.flags |= end_flags[user.end];
    }
    u32 size = (u32)at - (u32)r;
    if (size & 4) {
        *at = 0;
        size += 4;
    }
    s->head.size = (u16)size;
}

static NOINLINE bool tell_lost(struct session_cpu *c, u32 cpu, u64 time)
{
    struct sprofile_lost lost = {
        { SPROFILE_R_LOST, sizeof(lost), (u16)cpu, 0, time },
        c->lost_since,
    };
    if (!ring_write(&c->ring, &lost, sizeof(lost)))
        return false;
    c->lost_since = 0;
    return true;
}

// What is rare: ticks that came late, interrupts off.
static NOINLINE void count_oddities(struct session_cpu *c, u32 ticks, u32 flags)
{
    counter_add(&c->missed, ticks - 1);
    if (flags & SPROFILE_F_IRQS_OFF)
        counter_add(&c->irqs_off, 1);
}

// Returns the record's size.
static NOINLINE u32 fill_stacks(struct session_cpu *c, struct record *r,
                                const struct trapframe *tf)
{
    unwind(r, tf);
    if (unlikely(r->sample.head.flags & SPROFILE_F_USER_CUT))
        counter_add(&c->unreadable, 1);
    return r->sample.head.size;
}

// The record is not where it will stay: at the ring's end, or none.
static NOINLINE void store_elsewhere(struct session *s, struct session_cpu *c,
                                     struct hit h)
{
    struct record *r = &spares[h.cpu][s->source->nmi];
    bool full = c->lost_since && !tell_lost(c, h.cpu, h.time);
    fill(r, &h);
    if (s->flags & SPROFILE_O_STACKS)
        fill_stacks(c, r, h.tf);
    if (!full && ring_write(&c->ring, r, r->sample.head.size))
        return;
    c->lost_since++;
    counter_add(&c->lost, 1);
}

// Whether there is room in one piece. While samples are lost there is none:
// what is lost is told first.
static NOINLINE bool room_again(struct session *s, struct session_cpu *c)
{
    return !c->lost_since && ring_look(&c->ring, s->record_room);
}

static ALWAYS_INLINE void store(struct session *s, struct session_cpu *c,
                                const struct hit *h)
{
    counter_add(&c->taken[h->mode], 1);
    if (unlikely(h->ticks > 1 || h->flags & SPROFILE_F_IRQS_OFF))
        count_oddities(c, h->ticks, h->flags);
    if (unlikely(!ring_sure(&c->ring, s->record_room)) && !room_again(s, c)) {
        store_elsewhere(s, c, *h);
        return;
    }
    struct record *r = ring_place(&c->ring);
    fill(r, h);
    u32 size = PLAIN_SIZE;
    if (s->flags & SPROFILE_O_STACKS)
        size = fill_stacks(c, r, h->tf);
    ring_commit(&c->ring, size);
}

// What one session makes of it; `last`: when it began to. Returns when it
// ended.
static ALWAYS_INLINE u32 offer(struct session *s, const struct hit *h,
                               struct throttle *t, u32 last)
{
    u32 cpu = h->cpu;
    struct session_cpu *c = OPAQUE(&s->cpu[OPAQUE(cpu)]);
    if (unlikely(t->spent > spent_max))
        counter_add(&c->throttled, h->ticks);
    else if (likely(wanted(s, h)))
        store(s, c, h);
    else
        counter_add(&c->others, h->ticks);
    u32 now = (u32)rdtsc();
    t->spent += now - last;
    counter_add(&c->cycles, now - last);
    return now;
}

static ALWAYS_INLINE void offer_all(const struct sample_source *source,
                                    const struct hit *h)
{
    struct throttle *t = OPAQUE(&throttles[h->cpu].of[source->nmi]);
    u32 last = (u32)h->time;
    if (unlikely(last - t->window >= window_cycles)) {
        t->window = last;
        t->spent = 0;
    }
    struct session *s = READ_ONCE(sampled);
    for (; s; s = READ_ONCE(s->next)) {
        if (READ_ONCE(s->samples_of) == source)
            last = offer(s, h, t, last);
    }
}

static NOINLINE void take_kernel(const struct sample_source *source,
                                 struct hit h)
{
    describe_kernel(&h);
    offer_all(source, &h);
}

void sample_take(const struct sample_source *source, const struct trapframe *tf,
                 u32 ticks, u64 period, u64 time)
{
    const struct thread *thread = current;
    struct hit h = {
        .tf = tf,
        .time = time,
        .period = period,
        .ticks = ticks,
        .cpu = this_cpu_read(id),
        .mode = MODE_USER,
        .task = thread->task->id,
        .thread = READ_ONCE(thread->tid), // exec may change it
        .targets_of = READ_ONCE(thread->task->sessions),
    };
    if (unlikely(READ_ONCE(bins_source) == source))
        bins_sample(tf, ticks);
    if (likely(trap_from_user(tf)))
        offer_all(source, &h); // the compiler knows more of these
    else
        take_kernel(source, h);
}
