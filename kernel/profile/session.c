// Profiling sessions.
//
// The slots are read by sample_take in interrupt context without a lock. A slot
// is filled when the session is complete; it is emptied first when it ends, and
// then every CPU is made to pass through an interrupt: a sample_take that still
// saw the session has returned by then, for it runs with interrupts off.
// `sessions_lock` (mutex) guards slots against each other, and the source.

#include "kernel/errno.h"
#include "kernel/init/cmdline.h"
#include "kernel/init/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/sample.h"
#include "kernel/sched/task.h"
#include "lib/counter.h"
#include "lib/string.h"

#define SESSIONS_MAX 16
#define RATE_DEFAULT 1000
#define RING_RECORDS_DEFAULT 4096u
#define RING_RECORDS_MAX 131072u
#define PUMP_PERIOD_NS (50 * NSEC_PER_MSEC)

KERNEL_ARG(sampler, "sampler=NAME: the default sample source");

struct record {
    struct sprofile_sample sample;
    u32 pc;
    u32 padding;
};

struct session_cpu {
    struct ring ring;
    // Written by sample_take on this CPU, read by session_info on any.
    struct counter lost, user, kernel, others, missed, cycles;
};

struct session {
    struct task *task;     // referenced; NULL: system
    struct task *profiler; // left out of a system session; only compared
    struct waitq *readers;
    u32 rate_hz, ring_pages;
    bool paused, wait_exec;
    bool closed, ended; // the task's last sample is taken; and readers know
    u64 since_ns, elapsed_ns; // of the running stretch; before it
    u64 since_cycles, cycles; // the target's, likewise: what was expected
    struct timeout pump;
    u32 slot;
    struct session_cpu cpu[CPU_MAX];
};

static struct mutex sessions_lock = MUTEX_INIT(sessions_lock, "sessions");
static struct session *slots[SESSIONS_MAX];
static u32 session_count;
static const struct sample_source *source; // started while session_count > 0
static u32 source_hz;

// --- the sample -------------------------------------------------------------

static bool wanted(const struct session *s, const struct thread *t)
{
    if (READ_ONCE(s->paused) || READ_ONCE(s->closed))
        return false;
    return s->task ? t->task == s->task : t->task != s->profiler;
}

static void store(struct session_cpu *c, const struct trapframe *tf, u32 weight,
                  u64 began)
{
    const struct thread *t = current;
    bool kernel = !trap_from_user(tf);
    struct record r = {
        .sample = {
            .head = { SPROFILE_R_SAMPLE, sizeof(r), (u16)this_cpu()->id,
                      kernel ? SPROFILE_F_KERNEL : 0, began },
            .task = t->task->id, .thread = t->tid, .weight = weight,
            .depth = 1,
        },
        .pc = tf->eip,
    };
    if (!t->tid) // the idle threads have no id
        r.sample.head.flags |= SPROFILE_F_IDLE;
    counter_add(kernel ? &c->kernel : &c->user, 1);
    counter_add(&c->missed, weight - 1);
    if (!ring_write(&c->ring, &r, sizeof(r)))
        counter_add(&c->lost, 1);
}

void sample_take(const struct trapframe *tf, u32 weight)
{
    u64 began = rdtsc();
    u32 cpu = this_cpu()->id;
    for (u32 i = 0; i < SESSIONS_MAX; i++) {
        struct session *s = READ_ONCE(slots[i]);
        if (!s)
            continue;
        struct session_cpu *c = &s->cpu[cpu];
        if (wanted(s, current))
            store(c, tf, weight, began);
        else
            counter_add(&c->others, 1);
        u64 now = rdtsc();
        counter_add(&c->cycles, (u32)(now - began));
        began = now;
    }
}

// --- time that counts -------------------------------------------------------

static u64 target_cycles(struct session *s)
{
    u64 user, kernel;
    if (!s->task)
        return rdtsc() * cpu_count;
    task_times(s->task, &user, &kernel);
    return user + kernel;
}

static bool counting(const struct session *s)
{
    return !s->paused && !s->wait_exec;
}

static void stretch_begins(struct session *s)
{
    s->since_ns = clock_now_ns();
    s->since_cycles = target_cycles(s);
}

static void stretch_ends(struct session *s)
{
    s->elapsed_ns += clock_now_ns() - s->since_ns;
    s->cycles += target_cycles(s) - s->since_cycles;
}

static void set_paused(struct session *s, bool paused, bool wait_exec)
{
    bool was = counting(s);
    if (was)
        stretch_ends(s);
    s->wait_exec = wait_exec;
    WRITE_ONCE(s->paused, paused || wait_exec);
    s->paused = paused || wait_exec;
    if (counting(s))
        stretch_begins(s);
}

// --- begin and end ----------------------------------------------------------

static const struct sample_source *find_source(const char *name)
{
    const struct sample_source *best = NULL;
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        if ((*s)->why_not())
            continue;
        if (name[0] ? !strcmp(name, (*s)->name)
                    : !best || (*s)->rank > best->rank)
            best = *s;
    }
    return best;
}

static const struct sample_source *choose_source(const char *asked)
{
    if (asked[0])
        return find_source(asked);
    const struct sample_source *s = NULL;
    if (arg_sampler.present) {
        s = find_source(arg_sampler.value);
        if (!s)
            log_printf("sampler=%s: no such usable source\n",
                       arg_sampler.value);
    }
    return s ? s : find_source("");
}

// One source serves all sessions: a later session gets what is running, and
// learns from its info which and how fast that is.
static int start_source(const struct sprofile_options *o)
{
    if (session_count)
        return o->source[0] && strcmp(o->source, source->name) ? -EBUSY : 0;
    source = choose_source(o->source);
    if (!source)
        return -ENODEV;
    u32 hz = o->rate_hz ? o->rate_hz : RATE_DEFAULT;
    hz = MAX(source->min_hz, MIN(hz, source->max_hz));
    int real = source->start(hz);
    if (real < 0)
        return real;
    source_hz = (u32)real;
    return 0;
}

static void free_session(struct session *s)
{
    for (u32 i = 0; i < cpu_count; i++) {
        if (s->cpu[i].ring.bytes)
            vmap_free(s->cpu[i].ring.bytes, s->ring_pages);
    }
    if (s->task)
        task_unref(s->task);
    vmap_free(s, DIV_ROUND_UP(sizeof(*s), PAGE_SIZE));
}

static u32 ring_bytes(u32 records)
{
    if (!records)
        records = RING_RECORDS_DEFAULT;
    records = MAX(64u, MIN(records, RING_RECORDS_MAX));
    u32 bytes = PAGE_SIZE;
    while (bytes < records * sizeof(struct record))
        bytes *= 2;
    return bytes;
}

static struct session *alloc_session(const struct sprofile_options *o)
{
    struct session *s = vmap_alloc(DIV_ROUND_UP(sizeof(*s), PAGE_SIZE),
                                   PROT_R | PROT_W, FRAME_BUFFER);
    if (!s)
        return NULL;
    memset(s, 0, sizeof(*s));
    u32 bytes = ring_bytes(o->ring_records);
    s->ring_pages = bytes / PAGE_SIZE;
    for (u32 i = 0; i < cpu_count; i++) {
        void *ring = vmap_alloc(s->ring_pages, PROT_R | PROT_W, FRAME_BUFFER);
        if (!ring) {
            free_session(s);
            return NULL;
        }
        ring_init(&s->cpu[i].ring, ring, bytes);
    }
    return s;
}

static void pump(struct timeout *timeout)
{
    struct session *s = container_of(timeout, struct session, pump);
    if (session_readable(s))
        waitq_wake_all(s->readers);
    timeout_set(timeout, clock_now_ns() + PUMP_PERIOD_NS);
}

static int check_options(const struct sprofile_options *o)
{
    if (o->size != sizeof(*o) || (o->flags & ~SPROFILE_O_FROM_EXEC))
        return -EINVAL;
    if (!memchr(o->source, 0, sizeof(o->source)))
        return -EINVAL;
    return 0;
}

static int free_slot(void)
{
    for (int i = 0; i < SESSIONS_MAX; i++) {
        if (!slots[i])
            return i;
    }
    return -EBUSY;
}

static int begin_locked(struct session *s, const struct sprofile_options *o)
{
    int slot = free_slot();
    if (slot < 0)
        return slot;
    int err = start_source(o);
    if (err)
        return err;
    session_count++;
    s->rate_hz = source_hz;
    s->slot = (u32)slot;
    s->wait_exec = s->paused = o->flags & SPROFILE_O_FROM_EXEC;
    stretch_begins(s);
    __atomic_store_n(&slots[slot], s, __ATOMIC_RELEASE);
    return 0;
}

int session_begin(struct task *task, const struct sprofile_options *o,
                  struct waitq *readers, struct session **out)
{
    int err = check_options(o);
    if (err)
        return err;
    struct session *s = alloc_session(o);
    if (!s)
        return -ENOMEM;
    s->task = task;
    if (task)
        task_ref(task);
    s->profiler = current_task();
    s->readers = readers;
    timeout_init(&s->pump, pump);
    mutex_lock(&sessions_lock);
    err = begin_locked(s, o);
    mutex_unlock(&sessions_lock);
    if (err) {
        free_session(s);
        return err;
    }
    if (task && task->zombie)
        s->ended = true;
    timeout_set(&s->pump, clock_now_ns() + PUMP_PERIOD_NS);
    *out = s;
    return 0;
}

static void nothing(void *arg)
{
    (void)arg;
}

void session_end(struct session *s)
{
    timeout_cancel(&s->pump);
    mutex_lock(&sessions_lock);
    WRITE_ONCE(slots[s->slot], NULL);
    smp_call_others(nothing, NULL);
    if (!--session_count)
        source->stop();
    mutex_unlock(&sessions_lock);
    free_session(s);
}

void session_pause(struct session *s, bool pause)
{
    mutex_lock(&sessions_lock);
    set_paused(s, pause, s->wait_exec && pause);
    mutex_unlock(&sessions_lock);
}

void session_info(struct session *s, struct sprofile_info *out)
{
    *out = (struct sprofile_info){ .rate_hz = s->rate_hz, .cpus = cpu_count };
    mutex_lock(&sessions_lock);
    strlcpy(out->source, source->name, sizeof(out->source));
    u64 cycles = s->cycles;
    out->elapsed_ns = s->elapsed_ns;
    if (counting(s)) {
        cycles += target_cycles(s) - s->since_cycles;
        out->elapsed_ns += clock_now_ns() - s->since_ns;
    }
    mutex_unlock(&sessions_lock);
    // Expected from the ledger, which knows nothing of samples: a check of one
    // by the other.
    out->expected = clock_tsc_to_ns(cycles) * s->rate_hz / NSEC_PER_SEC;
    out->tsc_hz = clock_tsc_hz();
    for (u32 i = 0; i < cpu_count; i++) {
        const struct session_cpu *c = &s->cpu[i];
        // Lost before taken: while sampling goes on it is never the larger.
        out->lost += counter_read(&c->lost);
        out->user += counter_read(&c->user);
        out->kernel += counter_read(&c->kernel);
        out->others += counter_read(&c->others);
        out->missed += counter_read(&c->missed);
        out->cycles += counter_read(&c->cycles);
    }
    out->taken = out->user + out->kernel;
}

// --- reading ----------------------------------------------------------------

bool session_ended(struct session *s)
{
    return READ_ONCE(s->ended);
}

bool session_readable(struct session *s)
{
    if (session_ended(s))
        return true;
    for (u32 i = 0; i < cpu_count; i++) {
        const struct ring *r = &s->cpu[i].ring;
        if (ring_used(r) >= r->size / 4)
            return true;
    }
    return false;
}

// How many bytes of whole records fit.
static u32 whole_records(const struct ring *r, u32 room)
{
    u32 used = ring_used(r), n = 0;
    while (n < used) {
        struct sprofile_record head;
        ring_peek(r, n, &head, sizeof(head));
        if (n + head.size > room)
            break;
        n += head.size;
    }
    return n;
}

static int read_ring(struct ring *r, u32 addr, u32 room)
{
    u32 n = whole_records(r, room);
    u32 at = r->tail & (r->size - 1), first = MIN(n, r->size - at);
    if (copy_to_user(addr, r->bytes + at, first) ||
        copy_to_user(addr + first, r->bytes, n - first))
        return -EFAULT;
    ring_consume(r, n);
    return (int)n;
}

int session_read(struct session *s, u32 addr, u32 size)
{
    u32 done = 0;
    for (u32 i = 0; i < cpu_count; i++) {
        int n = read_ring(&s->cpu[i].ring, addr + done, size - done);
        if (n < 0)
            return done ? (int)done : n;
        done += (u32)n;
    }
    return (int)done;
}

// --- the target's life ------------------------------------------------------

static void task_execed(struct task *t)
{
    if (!READ_ONCE(session_count))
        return;
    mutex_lock(&sessions_lock);
    for (u32 i = 0; i < SESSIONS_MAX; i++) {
        struct session *s = slots[i];
        if (s && s->task == t && s->wait_exec)
            set_paused(s, false, false);
    }
    mutex_unlock(&sessions_lock);
}

// The last samples are in the rings before the reader hears of the end: nothing
// is taken that is never read.
static void close_session(struct session *s)
{
    WRITE_ONCE(s->closed, true);
    smp_call_others(nothing, NULL);
    WRITE_ONCE(s->ended, true);
    waitq_wake_all(s->readers);
}

static void task_ended(struct task *t)
{
    if (!READ_ONCE(session_count))
        return;
    mutex_lock(&sessions_lock);
    for (u32 i = 0; i < SESSIONS_MAX; i++) {
        if (slots[i] && slots[i]->task == t)
            close_session(slots[i]);
    }
    mutex_unlock(&sessions_lock);
}

static const struct task_observer profile_observer = { task_execed,
                                                       task_ended };
TASK_OBSERVER(profile_observer);
