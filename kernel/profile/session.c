// Sessions: streams that sample. Their begin and end, the accounting of
// measured time, and their info.

#include "arch/core_clock.h"
#include "arch/pmu.h"
#include "arch/trap.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/branch_stacks.h"
#include "kernel/profile/expected_samples.h"
#include "kernel/profile/session_private.h"
#include "kernel/task/permission.h"
#include "kernel/task/task.h"
#include "lib/string.h"

#define RING_DEFAULT KIB(256)
#define RING_DEEP MIB(2)
#define RING_DEEP_SAMPLES 4u // at least
#define KNOWN_FLAGS                                                   \
    (SPROFILE_O_FROM_EXEC | SPROFILE_O_CHILDREN | SPROFILE_O_STACKS | \
     SPROFILE_O_RANDOM | SPROFILE_O_DEEP | SPROFILE_O_LBR |           \
     SPROFILE_O_NO_FIXED)

struct session *sampled;

static struct session *session_of(struct stream *s)
{
    return container_of(s, struct session, stream);
}

static const struct stream_kind sampling;

struct session *session_in(u32 slot)
{
    mutex_assert_held(&streams_lock);
    struct stream *s = streams[slot];
    return s && s->kind == &sampling ? session_of(s) : NULL;
}

// --- accounting of measured time --------------------------------------------

static struct {
    u64 time;        // TSC when this CPU was quiescent
    u64 ticks;       // random ticks due by then
} boundary[CPU_MAX]; // streams_lock

struct change {
    struct session *session;
    const struct sample_source *samples_of;
};

// True if the source counts its ticks, which it does at random distances.
static bool counts_ticks(const struct session *s)
{
    return s->rate.random && s->source->ticks;
}

static void quiesce_here(void *arg)
{
    const struct change *c = arg;
    struct session *s = c->session;
    u32 cpu = this_cpu()->id;
    boundary[cpu].time = rdtsc();
    boundary[cpu].ticks = counts_ticks(s) ? s->source->ticks(s->source) : 0;
    WRITE_ONCE(s->cpu[cpu].samples_of, c->samples_of);
}

// Quiesces all CPUs at an accounting boundary: on each CPU samples of that
// source count from then on (NULL: none). Ticks that a CPU has not taken yet,
// because it was halted or held up, are accounted before the boundary, and no
// tick is pending across it: NMIs are taken ahead of a call (IPI), other
// interrupts at the latest when it returns. So the boot CPU's ticks are taken
// by the second call. If the boot CPU passes ticks on to the other CPUs, those
// are taken by the fourth.
static void quiesce(struct session *s, const struct sample_source *samples_of)
{
    assert(this_cpu_read(preempt_count));
    for (u32 i = 0; i < 3; i++)
        smp_quiesce_others();
    smp_call_all(quiesce_here, &(struct change){ s, samples_of });
}

// TSC cycles of all CPUs in handlers that delay ticks of the session's source:
// NMI handlers delay NMIs, any handler delays maskable ticks. 0 for a system
// session, whose time includes all handlers, and at random distances.
static u64 handler_cycles(const struct session *s)
{
    u64 sum = 0;
    if (!s->stream.task || !s->modes.kernel || counts_ticks(s))
        return 0;
    for (u32 i = 0; i < cpu_count; i++) {
        struct ledger_sums all;
        if (s->source->nmi) {
            sum += ledger_read(cpus[i], &cpus[i]->ledger->vectors[VECTOR_NMI]);
            continue;
        }
        ledger_sums(i, &all);
        sum += all.irq;
    }
    return sum;
}

// TSC cycles of all CPUs in the modes in which ticks come due.
static u64 system_cycles(const struct session *s)
{
    u64 sum = 0;
    for (u32 i = 0; i < cpu_count; i++) {
        struct ledger_sums all;
        ledger_sums(i, &all);
        if (s->modes.user)
            sum += all.user;
        if (s->modes.kernel)
            sum += all.elapsed - all.user - all.idle;
    }
    return sum;
}

// A reading of the targets' times, which are added to `in`.
struct times {
    struct session *session;
    u64 *in;
    enum sprofile_times_kind kind; // written to the stream; 0: they are not
};

static void add_times(struct task *t, void *arg)
{
    const struct times *to = arg;
    struct stream *s = &to->session->stream;
    u64 user, kernel;
    if (!s->task && t == s->profiler)
        return;
    task_times_locked(t, &user, &kernel);
    to->in[MODE_USER] += user;
    to->in[MODE_KERNEL] += kernel;
    if (to->kind)
        stream_put_times(s, t, to->kind, user, kernel);
}

// TSC cycles consumed by all targets, living and ended. (In a system session
// the sum is not used.)
static void read_targets(struct session *s, u64 *in,
                         enum sprofile_times_kind kind)
{
    struct times to = { s, in, kind };
    u32 flags = spin_lock_irq(&tasks_lock);
    memcpy(in, s->ended, sizeof(s->ended));
    if (kind)
        s->timed = kind == SPROFILE_TIMES_BEGIN;
    if (s->stream.task)
        stream_each_target(&s->stream, add_times, &to);
    else if (kind)
        task_for_each_locked(add_times, &to);
    spin_unlock_irq(&tasks_lock, flags);
}

// A sample in an idle thread counts as idle, whether it halts or not. An
// interrupt that takes samples is not sampled itself.
static void add_modes(u32 cpu, u64 *in)
{
    const struct account *vectors = cpus[cpu]->ledger->vectors;
    struct ledger_sums all;
    u64 user, awake;
    ledger_sums(cpu, &all);
    thread_times(sched_idle_thread(cpu), &user, &awake);
    in[MODE_USER] += all.user;
    in[MODE_KERNEL] += all.kernel - awake;
    in[MODE_IRQ] += all.irq - ledger_read(cpus[cpu], &vectors[VECTOR_NMI]) -
                    ledger_read(cpus[cpu], &vectors[LEDGER_SAMPLING]);
    in[MODE_IDLE] += all.idle + awake;
}

// TSC cycles of all CPUs, without the profiling task.
static void read_modes(const struct session *s, u64 *in)
{
    u64 user, kernel;
    memset(in, 0, sizeof(u64[MODES]));
    for (u32 i = 0; i < cpu_count; i++)
        add_modes(i, in);
    task_times(s->stream.profiler, &user, &kernel);
    in[MODE_USER] -= user;
    in[MODE_KERNEL] -= kernel;
}

// Called right after quiesce. The time of a system session is that of all CPUs.
static void read_sums(struct session *s, struct session_sums *out,
                      enum sprofile_times_kind kind)
{
    struct strobe_core_clock clock;
    core_clock_read(&clock);
    *out = (struct session_sums){
        .in_handlers = handler_cycles(s),
        .tool = cost_of_tool(s),
        .actual = clock.actual,
        .reference = clock.reference,
    };
    for (u32 i = 0; i < cpu_count; i++) {
        out->all += boundary[i].time;
        out->ticks += boundary[i].ticks;
    }
    read_targets(s, out->in, kind);
    if (s->stream.task) {
        out->targets = (s->modes.user ? out->in[MODE_USER] : 0) +
                       (s->modes.kernel ? out->in[MODE_KERNEL] : 0);
        return;
    }
    read_modes(s, out->in);
    out->targets = s->modes.idle ? out->all : system_cycles(s);
}

// Adds to `sums` what has passed since `s->since`.
static void add_passed(struct session *s, struct session_sums *sums,
                       enum sprofile_times_kind kind)
{
    struct session_sums now;
    read_sums(s, &now, kind);
    sums->targets += now.targets - s->since.targets;
    for (u32 mode = 0; mode < MODES; mode++)
        sums->in[mode] += now.in[mode] - s->since.in[mode];
    sums->in_handlers += now.in_handlers - s->since.in_handlers;
    sums->all += now.all - s->since.all;
    sums->ticks += now.ticks - s->since.ticks;
    sums->tool += now.tool - s->since.tool;
    sums->actual += now.actual - s->since.actual;
    sums->reference += now.reference - s->since.reference;
}

// Starts an interval. Not preempted, so that the ledger and the sample counters
// are read at the same moment.
static void start_interval(struct stream *stream)
{
    mutex_assert_held(&streams_lock);
    struct session *s = session_of(stream);
    preempt_disable();
    quiesce(s, s->source);
    stream->since_ns = clock_now_ns();
    costs_divide(); // earlier costs are not charged to this session
    read_sums(s, &s->since, SPROFILE_TIMES_BEGIN);
    preempt_enable();
}

static void end_interval(struct stream *stream)
{
    mutex_assert_held(&streams_lock);
    struct session *s = session_of(stream);
    preempt_disable();
    quiesce(s, NULL);
    stream->elapsed_ns += clock_now_ns() - stream->since_ns;
    costs_divide();
    add_passed(s, &s->before, SPROFILE_TIMES_END);
    preempt_enable();
}

// --- memory -----------------------------------------------------------------

static u32 session_bytes(void)
{
    return sizeof(struct session) + cpu_count * sizeof(struct session_cpu);
}

static u32 session_pages(void)
{
    return DIV_ROUND_UP(session_bytes(), PAGE_SIZE);
}

static void free_session(struct session *s)
{
    stream_free_rings(&s->stream);
    stream_release(&s->stream);
    vmap_free(s, session_pages());
}

static u32 ring_size(const struct stream *s, const struct sprofile_options *o)
{
    bool deep = o->flags & SPROFILE_O_DEEP;
    u32 bytes = deep ? KIB(64) : PAGE_SIZE, most = stream_most_ring_bytes(s);
    u32 asked = o->ring_bytes ? MIN(o->ring_bytes, most)
                : deep        ? RING_DEEP
                              : RING_DEFAULT;
    if (deep)
        asked = MAX(asked, RING_DEEP_SAMPLES * sprofile_stack_bytes(o));
    while (bytes < asked && bytes * 2 <= most)
        bytes *= 2;
    return bytes;
}

static struct session *alloc_session(struct task *task,
                                     const struct sprofile_options *o,
                                     struct waitq *readers)
{
    struct session *s =
        vmap_alloc(session_pages(), PROT_R | PROT_W, FRAME_BUFFER);
    if (!s)
        return NULL;
    struct stream *stream = &s->stream;
    stream_init(stream, &sampling, task, o->flags);
    for (u32 i = 0; i < cpu_count; i++)
        stream->rings.of_cpu[i] = &s->cpu[i].ring;
    if (!stream_alloc_rings(stream, ring_size(stream, o), readers))
        return s;
    free_session(s);
    return NULL;
}

// --- begin and end ----------------------------------------------------------

static bool event_valid(const struct sprofile_options *o)
{
    struct pmu_event event;
    if (!strcmp(o->source, SPROFILE_POINT_SOURCE))
        return point_event_valid(o->event);
    return !pmu_event_parse(o->event, &event);
}

static bool stack_bytes_valid(const struct sprofile_options *o)
{
    u32 bytes = o->stack_bytes;
    return !bytes ||
           (o->flags & SPROFILE_O_DEEP && bytes % 8 == 0 &&
            bytes >= SPROFILE_DEEP_LEAST && bytes <= SPROFILE_DEEP_MOST);
}

static int check_options(const struct sprofile_options *o,
                         const struct task *task)
{
    if (o->size != sizeof(*o) || o->flags & ~(u32)KNOWN_FLAGS)
        return -EINVAL;
    u32 chains = o->flags & (SPROFILE_O_STACKS | SPROFILE_O_DEEP);
    if (o->flags & SPROFILE_O_LBR && chains != SPROFILE_O_STACKS)
        return -EINVAL;
    if (!stack_bytes_valid(o))
        return -EINVAL;
    if (!memchr(o->source, 0, sizeof(o->source)) ||
        !memchr(o->event, 0, sizeof(o->event)))
        return -EINVAL;
    if (o->event[0] && !event_valid(o))
        return -ENOENT;
    // These flags need a target.
    u32 of_tasks = SPROFILE_O_FROM_EXEC | SPROFILE_O_CHILDREN;
    return !task && o->flags & of_tasks ? -EINVAL : 0;
}

// An event source with both a rate and a period counts cycles (pmc_source.c).
// With a period but no rate, `expected` is 0 whatever the modes.
static struct session_modes modes_due(const struct session *s)
{
    struct pmu_event e = { .user = true, .kernel = true };
    bool counts = s->source->counts;
    if (counts && (!s->rate.period || pmu_event_parse(s->rate.event, &e)))
        return (struct session_modes){ 0 };
    return (struct session_modes){ e.user, e.kernel, !counts };
}

static void release_branch_stacks(u32 flags)
{
    if (flags & SPROFILE_O_LBR)
        branch_stacks_stop();
}

static int begin_locked(struct session *s, const struct sprofile_options *o)
{
    mutex_assert_held(&streams_lock);
    int err = stream_find_slot(&s->stream);
    if (err)
        return err;
    s->rate = (struct sample_rate){
        .hz = o->rate_hz,
        .period = o->period,
        .random = o->flags & SPROFILE_O_RANDOM,
        .no_fixed = o->flags & SPROFILE_O_NO_FIXED,
    };
    strlcpy(s->rate.event, o->event, sizeof(s->rate.event));
    err = o->flags & SPROFILE_O_LBR ? branch_stacks_start() : 0;
    if (err)
        return err;
    err = source_acquire(o->source, &s->rate, &s->source, &s->instead_of);
    if (err) {
        release_branch_stacks(o->flags);
        return err;
    }
    s->modes = modes_due(s);
    for (u32 i = 0; i < cpu_count; i++)
        sample_init_cpu(&s->cpu[i], o, s->stream.limited, s->source->point);
    s->next = sampled;
    __atomic_store_n(&sampled, s, __ATOMIC_RELEASE);
    stream_publish(&s->stream);
    report_begun();
    return 0;
}

int session_begin(struct task *task, const struct sprofile_options *o,
                  struct waitq *readers, struct stream **out)
{
    int err = check_options(o, task);
    if (err)
        return err;
    struct session *s = alloc_session(task, o, readers);
    if (!s)
        return -ENOMEM;
    if (s->stream.limited && strchr(o->event, ':') &&
        point_event_valid(o->event)) {
        free_session(s); // fields may be the kernel's addresses
        return -EPERM;
    }
    s->flags = o->flags;
    s->asked_hz = o->rate_hz;
    core_clock_describe(&s->clock);
    mutex_lock(&streams_lock);
    err = begin_locked(s, o);
    mutex_unlock(&streams_lock);
    if (err) {
        free_session(s);
        return err;
    }
    stream_start_checks(&s->stream);
    *out = &s->stream;
    return 0;
}

static void take_out(const struct session *s)
{
    struct session **at = &sampled;
    while (*at != s)
        at = &(*at)->next;
    WRITE_ONCE(*at, s->next);
}

void session_end(struct stream *stream)
{
    struct session *s = session_of(stream);
    stream_stop_checks(stream);
    mutex_lock(&streams_lock);
    costs_divide();
    take_out(s);
    stream_withdraw(stream);
    source_release(s->source);
    release_branch_stacks(s->flags);
    report_ended(s);
    mutex_unlock(&streams_lock);
    free_session(s);
}

static void target_left(struct stream *stream, struct task *t)
{
    struct session *s = session_of(stream);
    enum sprofile_times_kind kind = s->timed ? SPROFILE_TIMES_END : 0;
    add_times(t, &(struct times){ s, s->ended, kind });
}

static const struct stream_kind sampling = {
    .max_streams = SESSIONS_MAX,
    .start = start_interval,
    .stop = end_interval,
    .end = session_end,
    .target_left = target_left,
};

// --- info -------------------------------------------------------------------

static void add_cpu(struct sprofile_info *out, const struct session_cpu *c)
{
    // `lost` is read before `taken`, so that it is never the larger while
    // sampling runs.
    out->lost += counter_read(&c->lost);
    out->irqs_off += counter_read(&c->irqs_off);
    out->user += counter_read(&c->taken[MODE_USER]);
    out->kernel += counter_read(&c->taken[MODE_KERNEL]);
    out->irq += counter_read(&c->taken[MODE_IRQ]);
    out->idle += counter_read(&c->taken[MODE_IDLE]);
    out->others += counter_read(&c->others);
    out->missed += counter_read(&c->missed);
    out->throttled += counter_read(&c->throttled);
    out->in_sampling += counter_read(&c->in_sampling);
    out->unreadable += counter_read(&c->unreadable);
}

void session_counts(const struct session *s, struct sprofile_info *out)
{
    for (u32 i = 0; i < cpu_count; i++)
        add_cpu(out, &s->cpu[i]);
    out->cycles += s->cost;
    out->interrupts += s->interrupts;
    out->taken = out->user + out->kernel + out->irq + out->idle;
}

// Of random ticks: see expected_samples.h.
static u64 expected(const struct session *s, const struct session_sums *sums,
                    const struct sprofile_info *info)
{
    u64 targets = sums->targets;
    if (!counts_ticks(s)) {
        targets += expected_share(sums->in_handlers, info->taken, info->others);
        return expected_ticks(targets, info->tsc_hz, info->rate_hz);
    }
    u64 ticks = 0;
    if (s->stream.task) {
        bool nmi = s->source->nmi;
        u64 behind =
            sample_behind(nmi) * (info->taken + info->throttled) +
            (nmi ? entry_cost.nmi : entry_cost.irq) * info->in_sampling;
        targets -= MIN(targets, behind);
        ticks = info->in_sampling;
    }
    u64 others = sums->all - MIN(sums->all, targets);
    return ticks + expected_share(sums->ticks, targets, others);
}

void session_info(struct stream *stream, struct sprofile_info *out)
{
    struct session *s = session_of(stream);
    *out = (struct sprofile_info){
        .rate_hz = s->rate.hz,
        .asked_hz = s->asked_hz,
        .period = s->rate.period,
        .cpus = cpu_count,
        .tasks = READ_ONCE(stream->live),
        .random = s->rate.random,
        .hides_kernel = stream->limited,
        .clock = s->clock,
        .tasks_lost = READ_ONCE(stream->rings.events_lost),
        .times_lost = READ_ONCE(stream->rings.times_lost),
    };
    strlcpy(out->source, s->source->name, sizeof(out->source));
    strlcpy(out->instead_of, s->instead_of, sizeof(out->instead_of));
    if (s->source->counts)
        strlcpy(out->event, s->rate.event, sizeof(out->event));
    mutex_lock(&streams_lock);
    preempt_disable();
    struct session_sums sums = s->before;
    if (stream_measures(stream)) {
        quiesce(s, s->source);
        add_passed(s, &sums, 0);
    }
    out->tool_cycles = sums.tool;
    out->clock.actual = sums.actual;
    out->clock.reference = sums.reference;
    costs_divide();
    out->elapsed_ns = stream_elapsed_ns(stream);
    session_counts(s, out);
    preempt_enable();
    mutex_unlock(&streams_lock);
    out->tsc_hz = clock_tsc_hz();
    out->clock.tsc_error_ppm = clock_tsc_error_ppm();
    out->expected = expected(s, &sums, out);
    out->user_cycles = sums.in[MODE_USER];
    out->kernel_cycles = sums.in[MODE_KERNEL];
    out->irq_cycles = sums.in[MODE_IRQ];
    out->idle_cycles = sums.in[MODE_IDLE];
}
