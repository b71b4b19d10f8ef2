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

// Not user mode.
static NOINLINE void describe_kernel(struct hit *h)
{
    static const u32 flags[MODES] = {
        [MODE_KERNEL] = SPROFILE_F_KERNEL,
        [MODE_IRQ] = SPROFILE_F_KERNEL | SPROFILE_F_IRQ,
        [MODE_IDLE] = SPROFILE_F_KERNEL | SPROFILE_F_IDLE,
    };
    // A maskable interrupt of the source's own is the innermost: `tf` is what
    // that has interrupted.
    if (this_cpu_read(irq_depth) > (h->tf == this_cpu_read(irq_frame)))
        h->mode = MODE_IRQ;
    else // idle threads have no id
        h->mode = READ_ONCE(h->thread->tid) ? MODE_KERNEL : MODE_IDLE;
    h->flags = flags[h->mode];
    if (!(h->tf->eflags & EFLAGS_IF))
        h->flags |= SPROFILE_F_IRQS_OFF;
}

static ALWAYS_INLINE void describe(struct hit *h)
{
    h->cpu = this_cpu_read(id);
    h->thread = current;
    h->mode = MODE_USER;
    h->flags = 0;
    if (unlikely(!trap_from_user(h->tf)))
        describe_kernel(h);
}

// An interrupt is nobody's: the ledger books it to its vector.
static ALWAYS_INLINE bool wanted(const struct session *s, const struct hit *h)
{
    const struct task *task = h->thread->task;
    if (!s->task)
        return task != s->profiler;
    return READ_ONCE(task->sessions) >> s->slot & 1 && h->mode != MODE_IRQ;
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
    s->task = h->thread->task->id;
    s->thread = READ_ONCE(h->thread->tid); // exec may change it
    s->period = h->period;
    words[8] = h->mode == MODE_USER ? 1 << USER_DEPTH_SHIFT : 1;
    s->pc[0] = h->tf->eip;
}

static NOINLINE u32 *unwind_kernel_part(struct sprofile_sample *s, u32 *at,
                                        const struct hit *h)
{
    bool cut;
    u32 n = unwind_kernel(h->tf, at, SPROFILE_FRAMES_MAX, &cut);
    s->kernel_depth = (u8)n;
    if (cut)
        s->head.flags |= SPROFILE_F_KERNEL_CUT;
    return at + n;
}

// The chains, kernel and user, and the top of the user's stack.
static void unwind(struct record *r, const struct hit *h)
{
    static const u16 end_flags[] = {
        [UNWIND_CUT] = SPROFILE_F_USER_CUT,
        [UNWIND_GAP] = SPROFILE_F_USER_GAP,
    };
    struct sprofile_sample *s = &r->sample;
    struct user_part user;
    u32 *at = r->words;
    if (h->mode != MODE_USER)
        at = unwind_kernel_part(s, at, h);
    u32 *end = unwind_user(h->tf, at, &user);
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

// What is rare: ticks that came late, interrupts off.
static NOINLINE void count_oddities(struct session_cpu *c, const struct hit *h)
{
    counter_add(&c->missed, h->ticks - 1);
    if (h->flags & SPROFILE_F_IRQS_OFF)
        counter_add(&c->irqs_off, 1);
}

static NOINLINE void fill_stacks(struct session_cpu *c, const struct hit *h,
                                 struct record *r)
{
    unwind(r, h);
    if (unlikely(r->sample.head.flags & SPROFILE_F_USER_CUT))
        counter_add(&c->unreadable, 1);
}

static NOINLINE void store_elsewhere(struct session *s, struct session_cpu *c,
                                     const struct hit *h, struct record *r)
{
    bool full = c->lost_since && !tell_lost(c, h);
    fill(r, h);
    if (s->flags & SPROFILE_O_STACKS)
        fill_stacks(c, h, r);
    if (!full && ring_write(&c->ring, r, r->sample.head.size))
        return;
    c->lost_since++;
    counter_add(&c->lost, 1);
}

static ALWAYS_INLINE void store(struct session *s, struct session_cpu *c,
                                const struct hit *h, struct record *spare)
{
    counter_add(&c->taken[h->mode], 1);
    if (unlikely(h->ticks > 1 || h->flags & SPROFILE_F_IRQS_OFF))
        count_oddities(c, h);
    if (unlikely(c->lost_since || !ring_has(&c->ring, s->record_room))) {
        store_elsewhere(s, c, h, spare);
        return;
    }
    struct record *r = ring_place(&c->ring);
    fill(r, h);
    u32 size = PLAIN_SIZE;
    if (s->flags & SPROFILE_O_STACKS) {
        fill_stacks(c, h, r);
        size = r->sample.head.size;
    }
    ring_commit(&c->ring, size);
}

// What one session makes of it; `last`: when it began to. Returns when it
// ended.
static ALWAYS_INLINE u32 offer(struct session *s, const struct hit *h,
                               struct level *l, u32 last)
{
    struct session_cpu *c = OPAQUE(&s->cpu[h->cpu]);
    if (unlikely(l->spent > spent_max))
        counter_add(&c->throttled, h->ticks);
    else if (likely(wanted(s, h)))
        store(s, c, h, &l->record);
    else
        counter_add(&c->others, h->ticks);
    u32 now = (u32)rdtsc();
    counter_add(&c->cycles, now - last);
    return now;
}

void sample_take(const struct sample_source *source, struct hit *h)
{
    u32 last = (u32)h->time;
    describe(h);
    struct level *l = OPAQUE(&levels[h->cpu][source->nmi]);
    if (unlikely(READ_ONCE(bins_source) == source))
        bins_sample(h->tf, h->ticks);
    if (unlikely(last - l->window >= window_cycles)) {
        l->window = last;
        l->spent = 0;
    }
    for (u32 used = READ_ONCE(slots_used); used; used &= used - 1) {
        struct session *s = READ_ONCE(slots[__builtin_ctz(used)]);
        if (s && READ_ONCE(s->samples_of) == source)
            last = offer(s, h, l, last);
    }
    l->spent += last - (u32)h->time;
}
