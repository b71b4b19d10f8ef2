// One sample: from the interrupt to the rings of the sessions that want it.
//
// Interrupts are off. No lock, no allocation, no fault; it may be an NMI. The
// record is built where it will stay, in the ring; at the ring's end in memory
// of this CPU, one for each level: an NMI may come while a maskable source's
// sample is under way. (They never share a ring: a session has one source.)

#include "arch/cpu.h"
#include "arch/irq.h"
#include "arch/regs.h"
#include "arch/unwind.h"
#include "kernel/profile/session_private.h"
#include "kernel/profile/throttle.h"
#include "kernel/task/task.h"
#include "kernel/time/ledger.h"

// Sampling may take a quarter of a CPU, looked at over this part of a second.
#define WINDOWS_PER_SECOND 100

// Chains (the user's goes on where a signal has interrupted), what the stack's
// part has beside its words, signals, padding.
#define WORDS_BESIDE_STACK         \
    (3 * SPROFILE_FRAMES_MAX + 3 + \
     SPROFILE_SIGNALS_MAX * (sizeof(struct sprofile_signal) / 4) + 1)
struct record {
    struct sprofile_sample sample;
    u32 words[WORDS_BESIDE_STACK + SPROFILE_STACK_WORDS];
};
#define DEEP_ROOM \
    (sizeof(struct record) + 4 * (SPROFILE_DEEP_WORDS - SPROFILE_STACK_WORDS))
_Static_assert(DEEP_ROOM <= UINT16_MAX &&
                   SIGNAL_FRAMES_MAX == SPROFILE_SIGNALS_MAX,
               "a record's size has 16 bits");

// One for each level of each CPU; no line of it is another CPU's.
static struct record spares[CPU_MAX][2];
static struct {
    struct throttle of[2];
} __attribute__((aligned(64))) throttles[CPU_MAX];

void sample_start_throttle(void)
{
    if (throttles[0].of[0].window)
        return; // others may be sampling by it
    u32 window = (u32)clock_tsc_hz() / WINDOWS_PER_SECOND;
    for (u32 i = 0; i < CPU_MAX; i++) {
        throttle_init(&throttles[i].of[false], window, entry_cost.irq);
        throttle_init(&throttles[i].of[true], window, entry_cost.nmi);
    }
}

u32 sample_nmi_cycles(void)
{
    u32 nmis = this_cpu_read(irq_counts)[VECTOR_NMI].low - 1;
    return this_ledger()->nmi_cycles + nmis * entry_cost.nmi;
}

// One interrupt, as all sessions see it. Handed on by value where a call is
// not inlined: so it has no address, and can be in registers.
struct view {
    const struct sample_hit *hit;
    u32 mode, flags;
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

static void describe_kernel(struct view *v)
{
    static const u32 flags[MODES] = {
        [MODE_KERNEL] = SPROFILE_F_KERNEL,
        [MODE_IRQ] = SPROFILE_F_KERNEL | SPROFILE_F_IRQ,
        [MODE_IDLE] = SPROFILE_F_KERNEL | SPROFILE_F_IDLE,
    };
    v->mode = kernel_mode(v->hit->tf);
    v->flags = flags[v->mode];
    if (!trap_irqs_on(v->hit->tf))
        v->flags |= SPROFILE_F_IRQS_OFF;
}

// Whether it has hit one of the session's targets. An interrupt handler is
// nobody's: the ledger books it to its vector.
static ALWAYS_INLINE bool is_target(const struct session *s,
                                    const struct view *v)
{
    return v->mode != MODE_IRQ &&
           READ_ONCE(current->task->streams) >> s->stream.slot & 1;
}

// (No task is a target of a system session.)
static ALWAYS_INLINE bool wanted(const struct session *s, const struct view *v)
{
    if (likely(is_target(s, v)))
        return true;
    return !s->stream.task && current->task != s->stream.profiler;
}

// Whole words at a time, in this order: a sample without stacks.
#define PLAIN_SIZE offsetof(struct record, words[1])
#define FLAGS_SHIFT 16
#define SIZE_SHIFT 16
#define USER_DEPTH_SHIFT 8
#define STACK_WORDS_SHIFT 16
_Static_assert(offsetof(struct sprofile_record, size) == 2 &&
                   offsetof(struct sprofile_record, cpu) == 4 &&
                   offsetof(struct sprofile_record, flags) == 6 &&
                   offsetof(struct sprofile_sample, kernel_depth) == 32 &&
                   offsetof(struct sprofile_sample, user_depth) == 33 &&
                   offsetof(struct sprofile_sample, stack_words) == 34 &&
                   offsetof(struct sprofile_sample, pc) == 36,
               "fill writes these as words");

static ALWAYS_INLINE void fill(struct record *r, const struct view *v,
                               const struct session_cpu *c)
{
    struct sprofile_sample *s = &r->sample;
    const struct thread *thread = current;
    u32 *words = (u32 *)r;
    words[0] = SPROFILE_R_SAMPLE | PLAIN_SIZE << SIZE_SHIFT;
    words[1] = this_cpu_read(id) | v->flags << FLAGS_SHIFT;
    s->head.time = v->hit->time;
    s->task = thread->task->id;
    s->thread = READ_ONCE(thread->tid); // exec may change it
    s->period = v->hit->period;
    words[8] = v->mode == MODE_USER ? 1 << USER_DEPTH_SHIFT : 1;
    bool hidden = v->mode != MODE_USER && c->hides_kernel;
    s->pc[0] = hidden ? 0 : trap_pc(v->hit->tf);
}

// (Where it is hidden one entry is there already: fill.)
static NOINLINE u32 *unwind_kernel_part(const struct session_cpu *c,
                                        struct sprofile_sample *s, u32 *at,
                                        const struct trapframe *tf)
{
    if (c->hides_kernel)
        return at + 1;
    bool cut;
    u32 n = unwind_kernel(tf, at, SPROFILE_FRAMES_MAX, &cut);
    s->kernel_depth = (u8)n;
    if (cut)
        s->head.flags |= SPROFILE_F_KERNEL_CUT;
    return at + n;
}

static NOINLINE bool tell_lost(struct session_cpu *c, u64 time)
{
    struct sprofile_lost lost = {
        { SPROFILE_R_LOST, sizeof(lost), (u16)this_cpu()->id, 0, time },
        c->lost_since,
    };
    if (!ring_write(&c->ring, &lost, sizeof(lost)))
        return false;
    c->lost_since = 0;
    return true;
}

// Of ticks that are not looked at, those that this is not the interrupt of.
static ALWAYS_INLINE void count_ticks(struct session_cpu *c, struct counter *as,
                                      u32 ticks)
{
    counter_add(as, ticks);
    if (unlikely(ticks > 1))
        counter_add(&c->merged, ticks - 1);
}

// What is rare: ticks that came late, interrupts off.
static NOINLINE void count_oddities(struct session_cpu *c, u32 ticks, u32 flags)
{
    counter_add(&c->missed, ticks - 1);
    if (flags & SPROFILE_F_IRQS_OFF)
        counter_add(&c->irqs_off, 1);
}

static NOINLINE void mark(struct session_cpu *c, struct sprofile_sample *s,
                          u32 flags)
{
    s->head.flags |= (u16)flags;
    if (flags & SPROFILE_F_USER_CUT)
        counter_add(&c->unreadable, 1);
}

// Where the chains end; returns the record's size.
static ALWAYS_INLINE u32 end_stacks(struct session_cpu *c, struct record *r,
                                    u32 *at, const struct user_part *user)
{
    struct sprofile_sample *s = &r->sample;
    s->stack_words = (u16)user->stack_words;
    s->user_depth = (u8)user->depth;
    if (unlikely(user->flags))
        mark(c, s, user->flags);
    u32 size = (u32)at - (u32)r;
    if (size & 4) {
        *at = 0;
        size += 4;
    }
    s->head.size = (u16)size;
    return size;
}

// The chains, kernel and user, and the top of the user's stack.
static NOINLINE u32 fill_stacks(struct session_cpu *c, struct record *r,
                                const struct trapframe *tf)
{
    struct user_part user;
    u32 *at = r->words;
    if (likely(trap_from_user(tf))) {
        at = unwind_user(tf, at, &user);
    } else {
        at = unwind_kernel_part(c, &r->sample, at, tf);
        at = unwind_left_user(tf, at, &user);
    }
    return end_stacks(c, r, at, &user);
}

// With more of the stack.
static NOINLINE u32 fill_deep(struct session_cpu *c, struct record *r,
                              const struct trapframe *tf)
{
    struct user_part user;
    u32 *at = r->words;
    if (!trap_from_user(tf))
        at = unwind_kernel_part(c, &r->sample, at, tf);
    at = unwind_user_deep(tf, at, &user);
    return end_stacks(c, r, at, &user);
}

void sample_init_cpu(struct session_cpu *c, u32 flags, bool hides_kernel)
{
    c->hides_kernel = hides_kernel;
    c->fill_stacks = NULL;
    c->record_room = offsetof(struct record, words[1]);
    if (!(flags & SPROFILE_O_STACKS))
        return;
    bool deep = flags & SPROFILE_O_DEEP;
    c->fill_stacks = deep ? fill_deep : fill_stacks;
    c->record_room = deep ? DEEP_ROOM : sizeof(struct record);
}

// The record is not where it will stay: at the ring's end, or none.
static NOINLINE void store_elsewhere(struct session *s, struct session_cpu *c,
                                     struct view v)
{
    struct record *r = &spares[this_cpu()->id][s->source->nmi];
    bool full = c->lost_since && !tell_lost(c, v.hit->time);
    fill(r, &v, c);
    if (c->fill_stacks) // there may be no room for more
        fill_stacks(c, r, v.hit->tf);
    if (!full && ring_write(&c->ring, r, r->sample.head.size))
        return;
    c->lost_since++;
    counter_add(&c->lost, 1);
}

// Fills the ring's end, which is too small for a record with much of a stack.
static bool pad(struct session_cpu *c, u64 time)
{
    struct ring *r = &c->ring;
    u32 left = r->sure - r->head;
    if ((u8 *)ring_place(r) + left != r->bytes + r->size ||
        left < sizeof(struct sprofile_record) || left > UINT16_MAX)
        return false;
    *(struct sprofile_record *)ring_place(r) =
        (struct sprofile_record){ SPROFILE_R_PAD, (u16)left,
                                  (u16)this_cpu()->id, 0, time };
    ring_commit(r, left);
    return true;
}

// Whether there is room in one piece. While samples are lost there is none:
// what is lost is told first. (It comes by here when the ring has become a
// quarter full: ring_look.)
static NOINLINE bool room_again(struct session *s, struct session_cpu *c,
                                u64 time)
{
    if (stream_quarter_full(&c->ring))
        stream_wake_soon(&s->stream);
    if (c->lost_since)
        return false;
    if (ring_look(&c->ring, c->record_room))
        return true;
    return c->record_room == DEEP_ROOM && pad(c, time) &&
           ring_look(&c->ring, c->record_room);
}

static ALWAYS_INLINE void store(struct session *s, struct session_cpu *c,
                                const struct view *v)
{
    counter_add(&c->taken[v->mode], 1);
    if (unlikely(v->hit->ticks > 1 || v->flags & SPROFILE_F_IRQS_OFF))
        count_oddities(c, v->hit->ticks, v->flags);
    if (unlikely(!ring_sure(&c->ring, c->record_room)) &&
        !room_again(s, c, v->hit->time)) {
        store_elsewhere(s, c, *v);
        return;
    }
    struct record *r = ring_place(&c->ring);
    fill(r, v, c);
    u32 size = PLAIN_SIZE;
    if (c->fill_stacks)
        size = c->fill_stacks(c, r, v->hit->tf);
    ring_commit(&c->ring, size);
}

// What one session makes of it.
static ALWAYS_INLINE void offer(struct session *s, struct session_cpu *c,
                                const struct view *v, const struct throttle *t)
{
    if (unlikely(t->spent > t->limit))
        count_ticks(c, &c->throttled, v->hit->ticks);
    else if (likely(wanted(s, v)))
        store(s, c, v);
    else
        count_ticks(c, &c->others, v->hit->ticks);
}

static ALWAYS_INLINE void offer_all(const struct sample_source *source,
                                    const struct view *v,
                                    const struct throttle *t)
{
    struct session *s = READ_ONCE(sampled);
    for (; s; s = READ_ONCE(s->next)) {
        // (Asked for where it is needed: one instruction, as from the stack.)
        struct session_cpu *c = OPAQUE(&s->cpu[this_cpu_read(id)]);
        if (READ_ONCE(c->samples_of) == source)
            offer(s, c, v, t);
    }
}

static NOINLINE void take_kernel(const struct sample_source *source,
                                 struct view v, const struct throttle *t)
{
    describe_kernel(&v);
    offer_all(source, &v, t);
}

static ALWAYS_INLINE void take(const struct sample_source *source,
                               const struct sample_hit *hit,
                               const struct throttle *t)
{
    struct view v = {
        .hit = hit,
        .mode = MODE_USER,
    };
    if (unlikely(READ_ONCE(bins_source) == source))
        bins_sample(hit->tf, hit->ticks);
    if (likely(trap_from_user(hit->tf)))
        offer_all(source, &v, t); // the compiler knows more of these
    else
        take_kernel(source, v, t);
}

void sample_take(const struct sample_source *source,
                 const struct sample_hit *hit)
{
    struct throttle *t = OPAQUE(&throttles[this_cpu_read(id)].of[true]);
    throttle_add(t, (u32)hit->time, this_ledger()->nmi_cycles);
    take(source, hit, t);
}

// (A second sample of one interrupt is counted with the first.)
void sample_take_irq(const struct sample_source *source,
                     const struct sample_hit *hit)
{
    struct throttle *t = OPAQUE(&throttles[this_cpu_read(id)].of[false]);
    // (An NMI may take its own time out of it.)
    const u64 *cycles = &this_ledger()->vectors[LEDGER_SAMPLING].cycles;
    u32 sum = READ_ONCE(*(const u32 *)cycles);
    if (ledger_irq_samples(hit->time)) {
        irq_count_up(LEDGER_SAMPLING);
        throttle_add(t, (u32)hit->time, sum);
    }
    take(source, hit, t);
}
