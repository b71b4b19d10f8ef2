// The address-bin profiler: see <strobe/profile.h>.
//
// There is one stream of this kind. It samples by the default source, started
// for it as for a session. `streams_lock` guards everything here; the sampling
// interrupt reads only `bins_source`, the stream's bit and the bins. Otherwise
// the bins are changed only while `bins_source` is NULL and after the other
// CPUs have been quiesced by an IPI: a sample runs with interrupts off.

#include "arch/cpu.h"
#include "arch/regs.h"
#include "kernel/base/errno.h"
#include "kernel/profile/bins.h"
#include "kernel/profile/session_private.h"
#include "kernel/task/permission.h"
#include "kernel/task/task.h"

const struct sample_source *bins_source;

static struct bins bins;
static struct stream stream;
static bool used;   // a task is profiled
static u32 targets; // the stream's bit in task->streams
static u32 owner;   // the user id of the current or last profiler
static const struct sample_source *source;
static bool whole;    // the range is the whole code of the program
static bool waiting;  // the range is for the next program (exec)
static u32 load_bias; // included in the range's addresses

void bins_sample(const struct trapframe *tf, u32 ticks)
{
    if (READ_ONCE(current->task->streams) & targets && trap_from_user(tf) &&
        !bins_add(&bins, trap_pc(tf), ticks))
        WRITE_ONCE(bins_source, NULL); // a bin is full
}

// --- the program's code -----------------------------------------------------

struct range {
    u32 low, end; // end 0: none yet
};

// Finds the lowest executable areas, which are the program's. The page that the
// kernel provides and the program's mappings lie above.
static int add_area(struct area *a, void *arg)
{
    struct range *r = arg;
    if (!r->end && a->prot & PROT_X)
        r->low = a->start;
    else if (!(a->prot & PROT_X) || r->end != a->start)
        return r->end;
    r->end = a->end;
    return 0;
}

// -ESRCH: its last thread has begun to end. -EFAULT: the task has no code.
static int find_code(struct task *t, struct range *out)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    struct aspace *as = t->threads_running ? t->aspace : NULL;
    if (as)
        aspace_ref(as);
    spin_unlock_irq(&tasks_lock, flags);
    if (!as)
        return -ESRCH;
    *out = (struct range){ 0 };
    aspace_for_each_area(as, add_area, out);
    aspace_unref(as);
    return out->end ? 0 : -EFAULT;
}

static bool contains(const struct range *code, u32 low, u32 high)
{
    return low >= code->low && high <= code->end - 1;
}

// --- begin and end ----------------------------------------------------------

static void stop_counting(void)
{
    WRITE_ONCE(bins_source, NULL);
    sample_bins_changed();
    smp_quiesce_others();
}

static void end(void)
{
    mutex_assert_held(&streams_lock);
    if (!used)
        return;
    stop_counting();
    stream_withdraw(&stream);
    source_release(source);
    stream_release(&stream);
    used = waiting = false;
}

// Profiling has stopped itself, in an interrupt: a bin is full.
static bool is_full(void)
{
    return used && !waiting && !READ_ONCE(bins_source);
}

static void start_counting(u32 low, u32 high)
{
    bins_init(&bins, low, high);
    __atomic_store_n(&bins_source, source, __ATOMIC_RELEASE);
    sample_bins_changed();
}

static int try_begin(struct task *t, u32 low, u32 high)
{
    struct range code;
    struct sample_rate rate = { .event = "", .random = true };
    const char *instead_of; // unused: source.c logs it
    int err = find_code(t, &code);
    if (err)
        return err;
    whole = !low && !high;
    bool inside = contains(&code, low, high);
    if (low > high || (!whole && !inside && READ_ONCE(t->execed)))
        return -EFAULT;
    err = source_acquire("", &rate, &source, &instead_of);
    if (err)
        return err;
    waiting = !whole && !inside;
    load_bias = waiting ? 0 : READ_ONCE(t->load_bias);
    if (waiting)
        bins_init(&bins, low, high);
    else
        start_counting(whole ? code.low : low, whole ? code.end - 1 : high);
    return 0;
}

static const struct stream_kind bins_kind;

// Publishes the stream, then checks the target. Its address space and liveness
// are read under tasks_lock, under which exec and exit change them, so any exec
// or exit after the check calls `execed` or `all_ended`.
static int begin(struct task *t, u32 low, u32 high)
{
    mutex_assert_held(&streams_lock);
    stream_init(&stream, &bins_kind, t, 0);
    int err = stream_find_slot(&stream);
    if (!err) {
        targets = 1u << stream.slot;
        stream_publish(&stream);
        err = try_begin(t, low, high);
        if (err)
            stream_withdraw(&stream);
    }
    if (err)
        stream_release(&stream);
    used = !err;
    return err;
}

int bins_profile(u32 id, u32 low, u32 high)
{
    struct task *t = id ? task_find(id) : NULL;
    int err = 0;
    if (id && !t)
        return -ESRCH;
    mutex_lock(&streams_lock);
    if ((t && !may_profile(t)) || (!t && used && !owns(owner)))
        err = -EPERM;
    else if (!t || is_full())
        end();
    if (t && !err)
        err = used ? -EBUSY : begin(t, low, high);
    if (t && !err)
        owner = READ_ONCE(current_task()->euid);
    mutex_unlock(&streams_lock);
    if (t)
        task_unref(t);
    return err;
}

int bins_result(struct prof_data *out)
{
    mutex_lock(&streams_lock);
    int err = owns(owner) ? 0 : -EPERM;
    if (!err)
        bins_read(&bins, out);
    mutex_unlock(&streams_lock);
    return err;
}

// --- the target's life ------------------------------------------------------

// A new program: the counts of the old one are discarded.
static void execed(struct stream *s)
{
    struct range code;
    struct task *t = s->task;
    stop_counting();
    waiting = false;
    u32 moved = READ_ONCE(t->load_bias) - load_bias;
    u32 low = bins.data.low + moved, high = bins.data.high + moved;
    load_bias += moved;
    if (find_code(t, &code) || (!whole && !contains(&code, low, high))) {
        bins.data.bins_used = 0;
        end();
        return;
    }
    start_counting(whole ? code.low : low, whole ? code.end - 1 : high);
}

static void all_ended(struct stream *s UNUSED)
{
    end();
}

// Nothing to do: `bins_source` determines whether samples are counted.
static void nothing(struct stream *s UNUSED)
{
}

static void target_left(struct stream *s UNUSED, struct task *t UNUSED)
{
}

static const struct stream_kind bins_kind = {
    .max_streams = 1,
    .start = nothing,
    .stop = nothing,
    .target_left = target_left,
    .execed = execed,
    .all_ended = all_ended,
};
