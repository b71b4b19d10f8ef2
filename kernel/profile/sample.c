// Sample processing: from the sampling interrupt to the rings of the sessions
// that want the sample.
//
// Runs with interrupts off, possibly in NMI context: takes no lock, allocates
// nothing, never faults. A record is built in place in the ring; where the rest
// of the ring is too short for it, a padding record fills that. An NMI may
// interrupt a maskable source's sample, but the two never write the same ring:
// a session has one source.

#include "arch/cpu.h"
#include "arch/irq.h"
#include "arch/mmu.h"
#include "arch/regs.h"
#include "arch/unwind.h"
#include "kernel/fs/devfs.h"
#include "kernel/profile/branch_stacks.h"
#include "kernel/profile/session_private.h"
#include "kernel/profile/throttle.h"
#include "kernel/task/task.h"
#include "kernel/time/ledger.h"
#include "kernel/trace/point.h"
#include "lib/cpu_memory.h"

// Windows of the throttle, which limits sampling to a quarter of a CPU.
#define WINDOWS_PER_SECOND 100

// Words of a record beside the stack contents: the kernel and user chains (a
// user chain continues in the code that a signal interrupted), the registers of
// the stack part, signal frames, padding.
#define WORDS_BESIDE_STACK         \
    (3 * SPROFILE_FRAMES_MAX + 3 + \
     SPROFILE_SIGNALS_MAX * (sizeof(struct sprofile_signal) / 4) + 1)
struct record {
    struct sprofile_sample sample;
    u32 words[WORDS_BESIDE_STACK + SPROFILE_STACK_WORDS];
};
#define DEEP_ROOM(bytes) \
    (sizeof(struct record) + (bytes)-4 * SPROFILE_STACK_WORDS)
_Static_assert(DEEP_ROOM(SPROFILE_DEEP_MOST) <= UINT16_MAX &&
                   SPROFILE_DEEP_LEAST > 4 * SPROFILE_STACK_WORDS &&
                   SIGNAL_FRAMES_MAX == SPROFILE_SIGNALS_MAX,
               "a record's size has 16 bits");

static struct throttle *throttles[CPU_MAX];
CPU_MEMORY(throttles, SAMPLE_WAYS);

static u32 throttle_cycles(void)
{
    return (u32)(clock_tsc_hz() / WINDOWS_PER_SECOND);
}

// The time by which an interrupt's arrival varies.
#define JITTER_NS 1000u
// A callout that is past when it is set comes after this time at most.
#define CALLOUT_DELAY_NS 1000u

static u64 nmi_delay = SAMPLE_NO_DELAY; // ns

static u32 behind(u32 entry, u64 delay_ns)
{
    u64 ns = delay_ns + JITTER_NS;
    return delay_ns == SAMPLE_NO_DELAY
               ? 0
               : entry + (u32)(ns * clock_tsc_hz() / NSEC_PER_SEC);
}

static void set_behind(void)
{
    const u32 cycles[] = {
        [BY_NMI] = behind(entry_cost.nmi, nmi_delay),
        [BY_IRQ] = behind(entry_cost.irq, CALLOUT_DELAY_NS),
    };
    for (u32 i = 0; i < cpu_count; i++) {
        for (u32 way = 0; way < ARRAY_SIZE(cycles); way++) {
            struct throttle *t = &throttles[i][way];
            WRITE_ONCE(t->behind, cycles[way]);
            WRITE_ONCE(t->notice,
                       READ_ONCE(bins_source) ? UINT32_MAX : cycles[way]);
        }
    }
}

void sample_nmi_delay(u64 ns)
{
    nmi_delay = ns;
    set_behind();
}

void sample_bins_changed(void)
{
    set_behind();
}

static void rate_corrected(void)
{
    set_behind();
    for (u32 i = 0; i < cpu_count; i++) {
        for (u32 way = 0; way < SAMPLE_WAYS; way++) {
            if (throttles[i][way].window)
                WRITE_ONCE(throttles[i][way].window, throttle_cycles());
        }
    }
}

static const struct tsc_rate_observer throttle_rate = { rate_corrected };
TSC_RATE_OBSERVER(throttle_rate);

u32 sample_behind(bool nmi)
{
    return READ_ONCE(throttles[0][nmi ? BY_NMI : BY_IRQ].behind);
}

void sample_start_throttle(void)
{
    if (throttles[0][BY_IRQ].window)
        return; // already set up; other sources may be using it
    const u32 overhead[SAMPLE_WAYS] = {
        [BY_IRQ] = entry_cost.irq, [BY_NMI] = entry_cost.nmi
    };
    u32 window = throttle_cycles(), seed;
    for (u32 i = 0; i < cpu_count; i++) {
        for (u32 way = 0; way < SAMPLE_WAYS; way++) {
            random_bytes(&seed, sizeof(seed));
            throttle_init(&throttles[i][way], window, overhead[way], seed);
        }
    }
    set_behind();
}

// One sampling interrupt, described once for all sessions. Passed by value to
// functions that are not inlined: its address is never taken, so it can be kept
// in registers.
struct view {
    const struct sample_hit *hit;
    u32 mode, flags;
};

static enum sample_mode kernel_mode(const struct trapframe *tf)
{
    // A maskable sampling interrupt is itself the innermost one (`tf` is its
    // frame) and does not count: `tf` is the context that it interrupted.
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

// True if the sample hit one of the session's targets. An interrupt handler
// belongs to no target: the ledger charges it to its vector.
static ALWAYS_INLINE bool is_target(const struct session *s,
                                    const struct view *v)
{
    return v->mode != MODE_IRQ &&
           READ_ONCE(current->task->streams) >> s->stream.slot & 1;
}

// A system session has no targets: it wants every sample that is not taken in
// the profiler.
static ALWAYS_INLINE bool wanted(const struct session *s, const struct view *v)
{
    if (likely(is_target(s, v)))
        return true;
    return !s->stream.task && current->task != s->stream.profiler;
}

// A sample without stacks. fill writes some fields as whole 32-bit words, which
// fixes their order.
#define PLAIN_SIZE offsetof(struct record, words[1])
#define LOST_SIZE sizeof(struct sprofile_lost)
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

// By words: a pair of registers would displace others.
static ALWAYS_INLINE void copy_u64(void *to, const void *from)
{
    u32 *t = to;
    const u32 *f = from;
    t[0] = f[0];
    t[1] = f[1];
}

static ALWAYS_INLINE void fill(struct record *r, const struct view *v,
                               const struct session_cpu *c)
{
    struct sprofile_sample *s = &r->sample;
    const struct thread *thread = current;
    u32 *words = (u32 *)r;
    words[0] = SPROFILE_R_SAMPLE | PLAIN_SIZE << SIZE_SHIFT;
    words[1] = this_cpu_read(id) | v->flags << FLAGS_SHIFT;
    copy_u64(&s->head.time, &v->hit->time);
    s->task = thread->task->id;
    s->thread = READ_ONCE(thread->tid); // exec may change it
    copy_u64(&s->period, &v->hit->period);
    words[8] = v->mode == MODE_USER ? 1 << USER_DEPTH_SHIFT : 1;
    u32 pc = trap_pc(v->hit->tf);
    if (v->mode != MODE_USER)
        pc = c->hides_kernel ? 0 : linked_address(pc);
    s->pc[0] = pc;
}

// If the kernel is hidden, the chain is the single entry, 0, that fill has
// stored.
static NOINLINE u32 *unwind_kernel_part(const struct session_cpu *c,
                                        struct sprofile_sample *s, u32 *at,
                                        const struct trapframe *tf, u32 stack)
{
    if (c->hides_kernel)
        return at + 1;
    bool cut;
    u32 n = unwind_kernel(tf, stack, at, SPROFILE_FRAMES_MAX, &cut);
    s->kernel_depth = (u8)n;
    if (cut)
        s->head.flags |= SPROFILE_F_KERNEL_CUT;
    return at + n;
}

static NOINLINE bool report_lost(struct session_cpu *c, u64 time)
{
    struct sprofile_lost lost = {
        { SPROFILE_R_LOST, LOST_SIZE, (u16)this_cpu()->id, 0, time },
        c->lost_since,
    };
    if (!ring_write(&c->ring, &lost, LOST_SIZE))
        return false;
    c->lost_since = 0;
    return true;
}

// An interrupt that yields no sample, and its ticks.
static ALWAYS_INLINE void count_ticks(struct session_cpu *c, struct counter *as,
                                      u32 ticks)
{
    counter_add(as, ticks);
    counter_add(&c->taken[NOT_TAKEN], 1);
}

// The rare cases: late ticks merged into this one, interrupts off.
static NOINLINE void count_late(struct session_cpu *c, u32 ticks, u32 flags)
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

// Completes a record whose chains end at `at`. Returns its size, padded to 8
// bytes.
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

// Appends the kernel and user chains, and what the session wants of the user's
// stack.
static NOINLINE u32 fill_stacks(struct session_cpu *c, struct record *r,
                                const struct trapframe *tf)
{
    struct user_part user;
    u32 *at = r->words;
    user.stack_words = c->deep_words;
    if (likely(trap_from_user(tf))) {
        at = c->unwind_user(tf, at, &user);
    } else {
        // The frame of a trace point's context lies elsewhere.
        u32 stack = c->by_point ? trap_stack(tf) : trap_kernel_stack(tf);
        at = unwind_kernel_part(c, &r->sample, at, tf, stack);
        at = c->unwind_left_user(tf, at, &user);
    }
    return end_stacks(c, r, at, &user);
}

// Of the callers that the CPU has recorded.
static u32 *unwind_recorded(const struct trapframe *tf, u32 *out,
                            struct user_part *part)
{
    *part = (struct user_part){ 0 };
    if (!unwind_user_pc(tf, out))
        return out;
    part->depth = 1 + branch_stacks_callers(out + 1, SPROFILE_FRAMES_MAX - 1);
    part->flags = SPROFILE_F_USER_CALLS;
    return out + part->depth;
}

void sample_init_cpu(struct session_cpu *c, const struct sprofile_options *o,
                     bool hides_kernel, bool by_point)
{
    u32 flags = o->flags, bytes = sprofile_stack_bytes(o);
    c->hides_kernel = hides_kernel;
    c->by_point = by_point;
    c->unwind_user = NULL;
    c->deep_words = 0;
    c->record_room = PLAIN_SIZE;
    if (!(flags & SPROFILE_O_STACKS))
        return;
    c->unwind_user = unwind_user;
    c->unwind_left_user = unwind_left_user;
    c->record_room = sizeof(struct record);
    if (flags & SPROFILE_O_LBR) {
        c->unwind_user = c->unwind_left_user = unwind_recorded;
    } else if (flags & SPROFILE_O_DEEP) {
        c->unwind_user = c->unwind_left_user = unwind_user_deep;
        c->record_room = DEEP_ROOM(bytes);
        c->deep_words = bytes / 4;
    }
}

// Fills the rest of the ring up to its end with a padding record, whose head
// may extend around the end.
static bool pad(struct ring *r, u64 time)
{
    u32 left = r->size - (r->head & (r->size - 1));
    struct sprofile_record head = { SPROFILE_R_PAD, (u16)left,
                                    (u16)this_cpu()->id, 0, time };
    if (left < sizeof(head)) {
        head.size = sizeof(head);
        return ring_write(r, &head, sizeof(head));
    }
    if (!ring_check_room(r, left))
        return false;
    *(struct sprofile_record *)ring_place(r) = head;
    ring_commit(r, left);
    return true;
}

// Pads if the rest of the ring is too short.
static bool find_room(struct ring *r, u32 bytes, u64 time)
{
    if (ring_check_room(r, bytes))
        return true;
    u32 left = r->size - (r->head & (r->size - 1));
    return left < bytes && pad(r, time) && ring_check_room(r, bytes);
}

// True if the ring has contiguous room for a record, checked against the
// reader's current position; samples lost before are reported first. Also
// called whenever another quarter of the ring has filled (ring_check_room),
// which is when the reader is woken.
static NOINLINE bool make_room(struct session *s, struct session_cpu *c,
                               u64 time)
{
    if (stream_quarter_full(&c->ring))
        stream_wake_soon(&s->stream);
    if (!c->lost_since)
        return find_room(&c->ring, c->record_room, time);
    return find_room(&c->ring, LOST_SIZE + c->record_room, time) &&
           report_lost(c, time) && ring_check_room(&c->ring, c->record_room);
}

static NOINLINE void count_lost(struct session_cpu *c)
{
    c->lost_since++;
    counter_add(&c->lost, 1);
}

static NOINLINE void trace_sample(u32 pc, u32 mode)
{
    if (mode != MODE_USER)
        pc = linked_address(pc);
    struct trace_profile_sample sample = { .pc = pc, .mode = (u8)mode };
    trace_record_sample(&sample);
}

static ALWAYS_INLINE void store(struct session *s, struct session_cpu *c,
                                const struct view *v)
{
    counter_add(&c->taken[v->mode], 1);
    if (unlikely(trace_wants_samples()))
        trace_sample(trap_pc(v->hit->tf), v->mode);
    if (unlikely(v->hit->ticks > 1 || v->flags & SPROFILE_F_IRQS_OFF))
        count_late(c, v->hit->ticks, v->flags);
    if (unlikely(!ring_has_room(&c->ring, c->record_room)) &&
        !make_room(s, c, v->hit->time)) {
        count_lost(c);
        return;
    }
    struct record *r = ring_place(&c->ring);
    fill(r, v, c);
    if (c->unwind_user)
        ring_commit(&c->ring, fill_stacks(c, r, v->hit->tf));
    else
        ring_commit(&c->ring, PLAIN_SIZE); // a constant: an instruction less
}

// What becomes of a tick of a session's targets.
enum fate { TAKEN, THROTTLED, IN_SAMPLING };

// Delivers one sample to one session: counted as outside the targets, as
// throttled or in sampling, or stored.
static ALWAYS_INLINE void deliver(struct session *s, struct session_cpu *c,
                                  const struct view *v, struct throttle *t,
                                  enum fate fate)
{
    if (unlikely(!wanted(s, v))) {
        count_ticks(c, &c->others, v->hit->ticks);
    } else if (fate == TAKEN) {
        throttle_charge(t);
        store(s, c, v);
    } else {
        bool throttled = fate == THROTTLED;
        count_ticks(c, throttled ? &c->throttled : &c->in_sampling,
                    v->hit->ticks);
    }
}

static ALWAYS_INLINE void deliver_all(const struct sample_source *source,
                                      const struct view *v, struct throttle *t,
                                      enum fate fate)
{
    struct session *s = READ_ONCE(sampled);
    for (; s; s = READ_ONCE(s->next)) {
        // The CPU's id is reread here: one instruction, as a reload from the
        // stack would be.
        struct session_cpu *c = OPAQUE(&s->cpu[this_cpu_read(id)]);
        if (READ_ONCE(c->samples_of) == source)
            deliver(s, c, v, t, fate);
    }
}

static NOINLINE void take_kernel(const struct sample_source *source,
                                 struct view v, struct throttle *t)
{
    describe_kernel(&v);
    deliver_all(source, &v, t, TAKEN);
}

static ALWAYS_INLINE void take(const struct sample_source *source,
                               const struct sample_hit *hit, struct throttle *t)
{
    struct view v = {
        .hit = hit,
        .mode = MODE_USER,
    };
    // Inlined for a mode that the compiler knows.
    if (likely(trap_from_user(hit->tf)))
        deliver_all(source, &v, t, TAKEN);
    else
        take_kernel(source, v, t);
}

// A tick that yields no sample.
static ALWAYS_INLINE void refuse(const struct sample_source *source,
                                 const struct sample_hit *hit,
                                 struct throttle *t, enum fate fate)
{
    struct view v = { .hit = hit, .mode = MODE_USER };
    if (!trap_from_user(hit->tf))
        describe_kernel(&v);
    deliver_all(source, &v, t, fate);
}

static NOINLINE void take_for_many(const struct sample_source *source,
                                   const struct sample_hit *hit,
                                   struct throttle *t, u32 ticks)
{
    struct sample_hit heavy = *hit;
    heavy.period *= ticks;
    take(source, &heavy, t);
}

static NOINLINE void take_by_lot(const struct sample_source *source,
                                 const struct sample_hit *hit,
                                 struct throttle *t)
{
    u32 ticks = throttle_draw(t, (u32)hit->time);
    if (!ticks)
        refuse(source, hit, t, THROTTLED);
    else
        take_for_many(source, hit, t, ticks);
}

static ALWAYS_INLINE void take_or_throttle(const struct sample_source *source,
                                           const struct sample_hit *hit,
                                           struct throttle *t)
{
    if (likely(!throttle_is_over(t)))
        take(source, hit, t);
    else if (throttle_refuses(t))
        refuse(source, hit, t, THROTTLED);
    else
        take_by_lot(source, hit, t);
}

// A tick that may have come due in the handler of another one, or that bins
// count, too.
static NOINLINE void take_noticed(const struct sample_source *source,
                                  const struct sample_hit *hit,
                                  struct throttle *t, u32 since)
{
    if (since < t->behind) {
        refuse(source, hit, t, IN_SAMPLING);
        return;
    }
    if (READ_ONCE(bins_source) == source)
        bins_sample(hit->tf, hit->ticks);
    take_or_throttle(source, hit, t);
}

void sample_take(const struct sample_source *source,
                 const struct sample_hit *hit)
{
    struct throttle *t = OPAQUE(throttles[this_cpu_read(id)] + BY_NMI);
    const struct ledger *l = this_ledger();
    u32 now = l->nmi_began, sum = l->nmi_cycles;
    u32 since = throttle_since(t, now, sum);
    if (unlikely(since < t->notice)) {
        throttle_add(t, now, sum);
        take_noticed(source, hit, t, since);
        return;
    }
    throttle_add(t, now, sum);
    take_or_throttle(source, hit, t);
}

void sample_take_event(const struct sample_source *source,
                       const struct sample_hit *hit)
{
    struct throttle *t = OPAQUE(throttles[this_cpu_read(id)] + BY_NMI);
    throttle_add(t, (u32)hit->time, this_ledger()->nmi_cycles);
    if (unlikely(t->notice))
        take_noticed(source, hit, t, UINT32_MAX);
    else
        take_or_throttle(source, hit, t);
}

// A further tick in the same interrupt is charged with the first. One of the
// same source has come due since that one did.
void sample_take_irq(const struct sample_source *source,
                     const struct sample_hit *hit)
{
    struct throttle *t = OPAQUE(&throttles[this_cpu_read(id)][BY_IRQ]);
    // Marked: an NMI may subtract its own time from this account at any point.
    const u64 *cycles = &this_ledger()->vectors[LEDGER_SAMPLING].cycles;
    u32 sum = READ_ONCE(*(const u32 *)cycles);
    if (ledger_irq_samples(hit->time)) {
        irq_count_up(LEDGER_SAMPLING);
        t->since = throttle_since(t, this_ledger()->irq_began, sum);
        throttle_add(t, this_ledger()->irq_began, sum);
        t->source = source;
    } else if (t->source == source) {
        t->since = 0;
    }
    if (unlikely(t->since < t->notice))
        take_noticed(source, hit, t, t->since);
    else
        take_or_throttle(source, hit, t);
}

void sample_take_point(const struct sample_source *source,
                       const struct sample_hit *hit, u32 cycles)
{
    struct throttle *t = OPAQUE(&throttles[this_cpu_read(id)][BY_POINT]);
    throttle_add(t, (u32)hit->time, cycles);
    take_or_throttle(source, hit, t);
}
