// Profiling sessions: how they begin and end, and what they say of themselves.

#include "arch/pmu.h"
#include "arch/trap.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/expected.h"
#include "kernel/profile/session_private.h"
#include "kernel/task/permission.h"
#include "kernel/task/task.h"
#include "lib/string.h"

#define RING_DEFAULT KIB(256)
#define RING_DEEP MIB(2)
#define RING_MAX MIB(16)
#define EVENTS_BYTES KIB(64)
#define PUMP_PERIOD_NS (100 * NSEC_PER_MSEC)
#define PUMPS_TO_LOOK 10
#define KNOWN_FLAGS                                                   \
    (SPROFILE_O_FROM_EXEC | SPROFILE_O_CHILDREN | SPROFILE_O_STACKS | \
     SPROFILE_O_RANDOM | SPROFILE_O_DEEP)

struct mutex sessions_lock = MUTEX_INIT(sessions_lock, "sessions");
struct session *slots[SESSIONS_MAX];
u32 slots_used;
struct session *sampled;

// --- time that counts -------------------------------------------------------

static struct {
    u64 time;       // TSC, when the CPU had settled
    u64 ticks;      // random ones that had come due by then
} settled[CPU_MAX]; // sessions_lock

struct change {
    struct session *session;
    const struct sample_source *samples_of;
};

// Whether the source counts its ticks, as the distances are random.
static bool counts_ticks(const struct session *s)
{
    return s->rate.random && s->source->ticks;
}

static void settled_here(void *arg)
{
    const struct change *c = arg;
    struct session *s = c->session;
    u32 cpu = this_cpu()->id;
    settled[cpu].time = rdtsc();
    settled[cpu].ticks = counts_ticks(s) ? s->source->ticks(s->source) : 0;
    WRITE_ONCE(s->cpu[cpu].samples_of, c->samples_of);
}

// On each CPU samples of that source count from then on (NULL: none). Ticks
// that a CPU has not taken yet, for it was halted or held up, are told of on
// the right side of that, and none is being told of behind it: NMIs come ahead
// of a call, other interrupts at the latest when it returns. So the boot CPU's
// have come by the second call; it may have been what tells the others of
// theirs, which have come by the fourth.
static void settle(struct session *s, const struct sample_source *samples_of)
{
    assert(this_cpu_read(preempt_count));
    for (u32 i = 0; i < 3; i++)
        smp_sync_others();
    smp_call_all(settled_here, &(struct change){ s, samples_of });
}

// Of all CPUs, in handlers that hold up the ticks of its source: an NMI holds
// up NMIs, any interrupt the others. Those of a system session are in its time.
static u64 held_up_cycles(const struct session *s)
{
    u64 sum = 0;
    for (u32 i = 0; s->task && s->when.kernel && i < cpu_count; i++) {
        struct ledger_sums all;
        if (s->source->nmi) {
            sum += ledger_read(&cpus[i], &cpus[i].ledger->vectors[VECTOR_NMI]);
            continue;
        }
        ledger_sums(i, &all);
        sum += all.irq;
    }
    return sum;
}

// Of all CPUs, as far as ticks come due there.
static u64 system_cycles(const struct session *s)
{
    u64 sum = 0;
    for (u32 i = 0; i < cpu_count; i++) {
        struct ledger_sums all;
        ledger_sums(i, &all);
        if (s->when.user)
            sum += all.user;
        if (s->when.kernel)
            sum += all.elapsed - all.user - all.idle;
    }
    return sum;
}

// When all CPUs have just settled. A system session is everybody's time.
static void read_sums(struct session *s, struct session_sums *out)
{
    *out = (struct session_sums){
        .held_up = held_up_cycles(s),
        .tool = cost_of_tool(s),
    };
    for (u32 i = 0; i < cpu_count; i++) {
        out->all += settled[i].time;
        out->ticks += settled[i].ticks;
    }
    out->targets = s->task        ? targets_cycles(s)
                   : s->when.idle ? out->all
                                  : system_cycles(s);
}

// To `sums` is added what has passed since `s->since`.
static void add_passed(struct session *s, struct session_sums *sums)
{
    struct session_sums now;
    read_sums(s, &now);
    sums->targets += now.targets - s->since.targets;
    sums->held_up += now.held_up - s->since.held_up;
    sums->all += now.all - s->since.all;
    sums->ticks += now.ticks - s->since.ticks;
    sums->tool += now.tool - s->since.tool;
}

static bool counting(const struct session *s)
{
    return !s->paused && !s->wait_exec;
}

// Not preempted: what the books say and what is counted are to be of the same
// moment.
static void stretch_begins(struct session *s)
{
    mutex_assert_held(&sessions_lock);
    preempt_disable();
    settle(s, s->source);
    s->since_ns = clock_now_ns();
    costs_divide(); // what came before is not this session's
    read_sums(s, &s->since);
    preempt_enable();
}

static void stretch_ends(struct session *s)
{
    mutex_assert_held(&sessions_lock);
    preempt_disable();
    settle(s, NULL);
    s->elapsed_ns += clock_now_ns() - s->since_ns;
    costs_divide();
    add_passed(s, &s->before);
    preempt_enable();
}

u64 session_elapsed_ns(const struct session *s)
{
    mutex_assert_held(&sessions_lock);
    return s->elapsed_ns + (counting(s) ? clock_now_ns() - s->since_ns : 0);
}

static void set_paused(struct session *s, bool paused, bool wait_exec)
{
    mutex_assert_held(&sessions_lock);
    if (counting(s))
        stretch_ends(s);
    s->wait_exec = wait_exec;
    s->paused = paused || wait_exec;
    if (counting(s))
        stretch_begins(s);
}

void session_exec_seen(struct session *s)
{
    mutex_assert_held(&sessions_lock);
    set_paused(s, false, false);
}

void session_pause(struct session *s, bool pause)
{
    mutex_lock(&sessions_lock);
    set_paused(s, pause, s->wait_exec && pause);
    mutex_unlock(&sessions_lock);
}

// --- memory -----------------------------------------------------------------

static void free_ring(struct ring *r)
{
    if (r->bytes)
        vmap_free(r->bytes, r->size / PAGE_SIZE);
}

static bool alloc_ring(struct ring *r, u32 bytes)
{
    void *at = vmap_alloc(bytes / PAGE_SIZE, PROT_R | PROT_W, FRAME_BUFFER);
    if (at)
        ring_init(r, at, bytes);
    return at;
}

static void free_session(struct session *s)
{
    for (u32 i = 0; i < cpu_count; i++)
        free_ring(&s->cpu[i].ring);
    free_ring(&s->events);
    if (s->task)
        task_unref(s->task);
    if (s->profiler)
        task_unref(s->profiler);
    vmap_free(s, DIV_ROUND_UP(sizeof(*s), PAGE_SIZE));
}

// All rings of an ordinary user take a 16th of memory at most.
static u32 most_ring_bytes(bool limited)
{
    u64 share = (u64)frames_total() * PAGE_SIZE / 16 / SESSIONS_OF_USER;
    return limited ? (u32)MIN(share / cpu_count, (u64)RING_MAX) : RING_MAX;
}

static u32 ring_size(const struct sprofile_options *o, bool limited)
{
    bool deep = o->flags & SPROFILE_O_DEEP;
    u32 bytes = deep ? KIB(64) : PAGE_SIZE;
    u32 asked = o->ring_bytes ? MIN(o->ring_bytes, RING_MAX)
                : deep        ? RING_DEEP
                              : RING_DEFAULT;
    while (bytes < asked && bytes * 2 <= most_ring_bytes(limited))
        bytes *= 2;
    return bytes;
}

static struct session *alloc_session(const struct sprofile_options *o,
                                     bool limited)
{
    struct session *s = vmap_alloc(DIV_ROUND_UP(sizeof(*s), PAGE_SIZE),
                                   PROT_R | PROT_W, FRAME_BUFFER);
    if (!s)
        return NULL;
    memset(s, 0, sizeof(*s));
    u32 size = ring_size(o, limited);
    bool all = alloc_ring(&s->events, EVENTS_BYTES);
    for (u32 i = 0; all && i < cpu_count; i++)
        all = alloc_ring(&s->cpu[i].ring, size);
    if (all)
        return s;
    free_session(s);
    return NULL;
}

// --- begin and end ----------------------------------------------------------

// Readers are woken from here: sample_take may be an NMI's, and wakes nobody.
// Also, now and then, to see whether a read has timed out: who polls knows of
// no time-out but its own.
static void pump(struct callout *callout)
{
    struct session *s = container_of(callout, struct session, pump);
    if (session_readable(s) || ++s->pumped % PUMPS_TO_LOOK == 0)
        waitq_wake_all(s->readers);
    callout_set(callout, clock_now_ns() + PUMP_PERIOD_NS);
}

static int check_options(const struct sprofile_options *o,
                         const struct task *task)
{
    if (o->size != sizeof(*o) || o->flags & ~(u32)KNOWN_FLAGS)
        return -EINVAL;
    if (!memchr(o->source, 0, sizeof(o->source)) ||
        !memchr(o->event, 0, sizeof(o->event)))
        return -EINVAL;
    struct pmu_event event;
    if (o->event[0] && pmu_event_parse(o->event, &event))
        return -ENOENT;
    // These are about a target.
    u32 of_tasks = SPROFILE_O_FROM_EXEC | SPROFILE_O_CHILDREN;
    return !task && o->flags & of_tasks ? -EINVAL : 0;
}

static int free_slot(const struct session *s)
{
    mutex_assert_held(&sessions_lock);
    u32 own = 0;
    int slot = -EUSERS;
    for (int i = SESSIONS_MAX - 1; i >= 0; i--) {
        if (!slots[i])
            slot = i;
        else
            own += slots[i]->uid == s->uid;
    }
    return s->limited && own >= SESSIONS_OF_USER ? -EUSERS : slot;
}

static void publish(struct session *s)
{
    mutex_assert_held(&sessions_lock);
    assert(s->slot < SESSIONS_MAX && !slots[s->slot]);
    u32 flags = spin_lock_irq(&tasks_lock);
    // From then on, not only as a zombie, nobody would tell of its end.
    if (s->task && !s->task->threads_running)
        s->ended = true;
    else if (s->task)
        targets_add(s);
    slots[s->slot] = s;
    s->next = sampled;
    __atomic_store_n(&sampled, s, __ATOMIC_RELEASE);
    WRITE_ONCE(slots_used, slots_used | 1u << s->slot);
    spin_unlock_irq(&tasks_lock, flags);
}

// (Whatever pmc counts, at a rate that it knows, are cycles: pmc_source.c.)
static struct session_when when_due(const struct session *s)
{
    struct pmu_event e = { .user = true, .kernel = true };
    bool counts = s->source->counts;
    if (counts && (!s->rate.period || pmu_event_parse(s->rate.event, &e)))
        return (struct session_when){ 0 };
    return (struct session_when){ e.user, e.kernel, !counts };
}

static int begin_locked(struct session *s, const struct sprofile_options *o)
{
    mutex_assert_held(&sessions_lock);
    int slot = free_slot(s);
    if (slot < 0)
        return slot;
    s->rate = (struct sample_rate){
        .hz = o->rate_hz,
        .period = o->period,
        .random = o->flags & SPROFILE_O_RANDOM,
    };
    strlcpy(s->rate.event, o->event, sizeof(s->rate.event));
    int err = source_acquire(o->source, &s->rate, &s->source, &s->instead_of);
    if (err)
        return err;
    s->slot = (u32)slot;
    s->when = when_due(s);
    s->wait_exec = s->paused = o->flags & SPROFILE_O_FROM_EXEC;
    for (u32 i = 0; i < cpu_count; i++)
        sample_init_cpu(&s->cpu[i], s->flags, s->limited);
    publish(s);
    if (counting(s))
        stretch_begins(s);
    figures_begun();
    return 0;
}

int session_begin(struct task *task, const struct sprofile_options *o,
                  struct waitq *readers, struct session **out)
{
    int err = check_options(o, task);
    if (err)
        return err;
    bool limited = !may_profile_everything();
    struct session *s = alloc_session(o, limited);
    if (!s)
        return -ENOMEM;
    s->task = task;
    if (task)
        task_ref(task);
    s->profiler = current_task();
    task_ref(s->profiler);
    s->owner = s->profiler->id;
    s->readers = readers;
    s->limited = limited;
    s->uid = READ_ONCE(s->profiler->euid);
    s->flags = o->flags;
    s->asked_hz = o->rate_hz;
    spin_init(&s->event_lock, "profile events");
    callout_init(&s->pump, pump, CALLOUT_INTERRUPT);
    mutex_lock(&sessions_lock);
    err = begin_locked(s, o);
    mutex_unlock(&sessions_lock);
    if (err) {
        free_session(s);
        return err;
    }
    callout_set(&s->pump, clock_now_ns() + PUMP_PERIOD_NS);
    *out = s;
    return 0;
}

void session_end(struct session *s)
{
    assert(slots[s->slot] == s);
    callout_drain(&s->pump);
    mutex_lock(&sessions_lock);
    costs_divide();
    targets_clear(s);
    smp_sync_others();
    source_release(s->source);
    figures_ended(s);
    mutex_unlock(&sessions_lock);
    free_session(s);
}

// --- info -------------------------------------------------------------------

static void add_cpu(struct sprofile_info *out, const struct session_cpu *c)
{
    // Lost before taken: while sampling goes on it is never the larger.
    out->lost += counter_read(&c->lost);
    out->irqs_off += counter_read(&c->irqs_off);
    out->user += counter_read(&c->taken[MODE_USER]);
    out->kernel += counter_read(&c->taken[MODE_KERNEL]);
    out->irq += counter_read(&c->taken[MODE_IRQ]);
    out->idle += counter_read(&c->taken[MODE_IDLE]);
    out->others += counter_read(&c->others);
    out->missed += counter_read(&c->missed);
    out->throttled += counter_read(&c->throttled);
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

// Of ticks at random the number is known, and the targets have their share of
// the time; of others the rate.
static u64 expected(const struct session *s, const struct session_sums *sums,
                    const struct sprofile_info *info)
{
    u64 targets = sums->targets +
                  expected_share(sums->held_up, info->taken, info->others);
    if (!counts_ticks(s))
        return expected_ticks(targets, info->tsc_hz, info->rate_hz);
    u64 others = sums->all - MIN(sums->all, targets);
    return expected_share(sums->ticks, targets, others);
}

void session_info(struct session *s, struct sprofile_info *out)
{
    *out = (struct sprofile_info){
        .rate_hz = s->rate.hz,
        .asked_hz = s->asked_hz,
        .period = s->rate.period,
        .cpus = cpu_count,
        .tasks = READ_ONCE(s->live),
        .random = s->rate.random,
        .hides_kernel = s->limited,
        .tasks_lost = READ_ONCE(s->events_lost),
    };
    strlcpy(out->source, s->source->name, sizeof(out->source));
    strlcpy(out->instead_of, s->instead_of, sizeof(out->instead_of));
    if (s->source->counts)
        strlcpy(out->event, s->rate.event, sizeof(out->event));
    mutex_lock(&sessions_lock);
    preempt_disable();
    struct session_sums sums = s->before;
    if (counting(s)) {
        settle(s, s->source);
        add_passed(s, &sums);
    }
    out->tool_cycles = sums.tool;
    costs_divide();
    out->elapsed_ns = session_elapsed_ns(s);
    session_counts(s, out);
    preempt_enable();
    mutex_unlock(&sessions_lock);
    out->tsc_hz = clock_tsc_hz();
    out->expected = expected(s, &sums, out);
}
