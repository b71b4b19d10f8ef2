// The trace of calls that a tool controls.
//
// `trace_mutex` guards all of it, and is held while kernel/trace/calls.h's
// functions are called.
#include "kernel/profile/call_trace.h"
#include "arch/clock.h"
#include "arch/cpu.h"
#include "arch/mmu.h"
#include "arch/text.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/stop_machine.h"
#include "kernel/sync/mutex.h"
#include "kernel/task/task.h"
#include "kernel/trace/calls.h"
#include "lib/string.h"

// Without a wish, the tables take at most this part of the free memory, and
// half of the free addresses: reports need addresses, too.
#define MEMORY_PART 16u
#define ENTRIES_LEAST 256u
#define ENTRIES_CHOSEN_MOST 16384u
#define ENTRIES_MOST 65536u

static struct mutex trace_mutex = MUTEX_INIT(trace_mutex, "trace of calls");
static struct {
    bool exists, paused;
    struct calls_options options;
    u32 *functions;    // options.function_count of them
    struct task *task; // referenced, as is the next; NULL: all
    struct task *except;
    u32 owner;
    u32 outside_caller, outside_own;
    struct trace_ring *const *rings; // of calls that are recorded, at the begin
} trace;

// --- options ----------------------------------------------------------------

static u32 record_size(void)
{
    return trace.options.mode == CALLS_ARCS ? sizeof(struct calls_arc)
                                            : sizeof(struct calls_node);
}

static u32 power_of_two_from(u32 n)
{
    u32 power = ENTRIES_LEAST;
    while (power < n)
        power *= 2;
    return power;
}

static u32 choose_entries(void)
{
    u32 bytes = trace.options.mode == CALLS_ARCS
                    ? sizeof(struct call_arc)
                    : sizeof(struct call_node) + sizeof(struct call_node *);
    u32 pages = MIN(frames_free() / MEMORY_PART, vmap_pages_free() / 2);
    u32 most = pages / cpu_count * (PAGE_SIZE / bytes);
    u32 n = ENTRIES_LEAST;
    while (n < ENTRIES_CHOSEN_MOST && n * 2 <= most)
        n *= 2;
    return n;
}

// Each must be the linked address of the entry of a function that can be
// patched; ascending. Makes them addresses.
static bool functions_known(u32 *functions, u32 count)
{
    const u32 *site = text_entries_start;
    for (u32 i = 0; i < count; i++) {
        functions[i] = moved_address(functions[i]);
        while (site < text_entries_end && *site < functions[i])
            site++;
        if (site == text_entries_end || *site++ != functions[i])
            return false;
    }
    return true;
}

static int check_options(struct calls_options *o)
{
    if (o->size != sizeof(*o) ||
        (!calls_are_counted(o->mode) && !trace.rings) ||
        o->depth > CALLS_DEPTH_MAX || o->entries > ENTRIES_MOST ||
        o->paused > 1)
        return -EINVAL;
    if (!o->depth)
        o->depth = CALLS_DEPTH_MAX;
    o->entries = o->entries ? power_of_two_from(o->entries) : choose_entries();
    return 0;
}

int call_trace_functions(u32 list, u32 *count, u32 **out)
{
    u32 most = text_entries_end - text_entries_start;
    bool all = *count == CALLS_ALL;
    if (all)
        *count = most;
    if (!*count || *count > most)
        return -EINVAL;
    u32 bytes = *count * sizeof(u32);
    u32 *functions = kmalloc(bytes);
    if (!functions)
        return -ENOMEM;
    int err = 0;
    if (all)
        memcpy(functions, text_entries_start, bytes);
    else if (copy_from_user(functions, list, bytes))
        err = -EFAULT;
    else if (!functions_known(functions, *count))
        err = -EINVAL;
    if (err) {
        kfree(functions);
        return err;
    }
    *out = functions;
    return 0;
}

// --- call stacks for all threads --------------------------------------------

struct giving {
    struct list spare;
    u32 missing;
};

static void give(struct giving *g, struct thread *t, u32 root)
{
    if (READ_ONCE(t->traced))
        return;
    if (list_empty(&g->spare)) {
        g->missing++;
        return;
    }
    struct call_stack *s = list_first(&g->spare, struct call_stack, node);
    list_remove(&s->node);
    if (!call_stack_give(t, s, root))
        list_push_back(&g->spare, &s->node);
}

static void give_task(struct task *task, void *arg)
{
    struct thread *t;
    if ((trace.task && task != trace.task) || task == trace.except)
        return;
    list_for_each(t, &task->threads, task_node)
        give(arg, t, CALLS_ROOT_THREADS);
}

static bool get_spare(struct giving *g)
{
    for (; g->missing; g->missing--) {
        struct call_stack *s = call_stack_alloc(trace.options.depth);
        if (!s)
            return false;
        list_push_back(&g->spare, &s->node);
    }
    return true;
}

// False: no memory.
static bool give_all(void)
{
    struct giving g = { .missing = 0 };
    list_init(&g.spare);
    bool enough = true;
    do {
        enough = get_spare(&g);
        for (u32 i = 0; i < cpu_count && !trace.task; i++)
            give(&g, sched_idle_thread(i), CALLS_ROOT_IDLE);
        u32 flags = spin_lock_irq(&tasks_lock);
        task_for_each_locked(give_task, &g);
        give_task(&kernel_task, &g); // is on no list
        spin_unlock_irq(&tasks_lock, flags);
    } while (g.missing && enough);
    while (!list_empty(&g.spare)) {
        struct call_stack *s = list_first(&g.spare, struct call_stack, node);
        list_remove(&s->node);
        call_stack_free(s);
    }
    return enough;
}

// --- begin and end ----------------------------------------------------------

static void release(void)
{
    kfree(trace.functions);
    if (trace.task)
        task_unref(trace.task);
    if (trace.except)
        task_unref(trace.except);
    memset(&trace, 0, sizeof(trace));
}

static void start(void)
{
    calls_start(trace.functions, trace.options.function_count);
}

static int allocate_and_start(void)
{
    const struct calls_options *o = &trace.options;
    struct call_trace what = {
        .mode = o->mode,
        .task = trace.task,
        .except = trace.except,
        .depth = o->depth,
    };
    int err = calls_alloc(&what, o->entries, trace.rings);
    if (err)
        return err;
    if (calls_have_frames(o->mode) && !give_all())
        err = -ENOMEM;
    if (err)
        calls_free();
    else if (!o->paused)
        start();
    return err;
}

static int begin(void)
{
    struct calls_options *o = &trace.options;
    int err = check_options(o);
    if (!err && o->task) {
        trace.task = task_find(o->task);
        err = trace.task ? 0 : -ESRCH;
    } else if (!err && current_task() != &kernel_task) {
        trace.except = current_task();
        task_ref(trace.except);
    }
    if (!err && o->mode == CALLS_PATHS)
        err = call_trace_measure(&trace.outside_caller, &trace.outside_own);
    if (!err)
        err = allocate_and_start();
    return err;
}

static int begin_with(const struct calls_options *o, u32 *functions,
                      struct trace_ring *const *rings)
{
    mutex_lock(&trace_mutex);
    if (trace.exists) {
        mutex_unlock(&trace_mutex);
        kfree(functions);
        return -EBUSY;
    }
    trace.options = *o;
    trace.functions = functions;
    trace.rings = rings;
    int err = begin();
    trace.rings = NULL;
    if (err) {
        release();
    } else {
        trace.exists = true;
        trace.paused = o->paused;
        trace.owner = current_task()->id;
    }
    mutex_unlock(&trace_mutex);
    return err;
}

int call_trace_begin_with(const struct calls_options *o, u32 *functions)
{
    return begin_with(o, functions, NULL);
}

int call_trace_begin_events(const struct calls_options *o, u32 *functions,
                            struct trace_ring *const *rings)
{
    return begin_with(o, functions, rings);
}

int call_trace_begin(u32 options)
{
    struct calls_options o;
    u32 *functions;
    if (copy_from_user(&o, options, sizeof(o)))
        return -EFAULT;
    if (o.size != sizeof(o))
        return -EINVAL;
    int err = call_trace_functions(o.functions, &o.function_count, &functions);
    return err ? err : call_trace_begin_with(&o, functions);
}

void call_trace_end(void)
{
    mutex_lock(&trace_mutex);
    assert(trace.exists);
    if (!trace.paused)
        calls_stop();
    calls_free();
    release();
    mutex_unlock(&trace_mutex);
}

void call_trace_pause(bool pause)
{
    mutex_lock(&trace_mutex);
    if (pause && !trace.paused)
        calls_stop();
    else if (!pause && trace.paused)
        start();
    trace.paused = pause;
    mutex_unlock(&trace_mutex);
}

// --- reports ----------------------------------------------------------------

static void describe(struct calls_info *out)
{
    const struct calls_options *o = &trace.options;
    *out = (struct calls_info){
        .state = trace.paused ? CALLS_PAUSED : CALLS_RUNNING,
        .mode = o->mode,
        .task = o->task,
        .depth = o->depth,
        .entries = o->entries,
        .functions = o->function_count,
        .cpus = cpu_count,
        .owner = trace.owner,
        .tsc_hz = clock_tsc_hz(),
        .outside_caller = trace.outside_caller,
        .outside_own = trace.outside_own,
        .stopped = stop_machine_longest(),
        .tsc_error_ppm = clock_tsc_error_ppm(),
    };
}

void call_trace_losses(u64 *too_deep, u64 *no_frames)
{
    struct calls_info i = { .state = CALLS_NONE };
    mutex_lock(&trace_mutex);
    calls_report(&i, NULL, 0, false);
    *too_deep = i.too_deep;
    *no_frames = i.no_frames;
    mutex_unlock(&trace_mutex);
}

int call_trace_info(u32 info)
{
    struct calls_info i = { .state = CALLS_NONE };
    mutex_lock(&trace_mutex);
    if (trace.exists) {
        describe(&i);
        calls_report(&i, NULL, 0, false);
    }
    mutex_unlock(&trace_mutex);
    return copy_to_user(info, &i, sizeof(i));
}

static void free_records(void *records, u32 pages)
{
    if (records)
        vmap_free(records, pages);
}

// There is a trace. The records may become more until they are reported.
static int read_trace(u32 buffer, u32 size, bool reset)
{
    mutex_assert_held(&trace_mutex);
    struct calls_info i;
    describe(&i);
    u32 pages = 0, max, most = size > sizeof(i) ? size - sizeof(i) : 0;
    void *records = NULL;
    most /= record_size();
    for (;;) {
        max = MIN(pages * PAGE_SIZE / record_size(), most);
        calls_report(&i, records, max, reset);
        if (i.records <= max || i.records > most)
            break;
        free_records(records, pages);
        pages = (i.records * record_size() + PAGE_SIZE - 1) / PAGE_SIZE + 1;
        records = vmap_alloc(pages, PROT_R | PROT_W, FRAME_BUFFER);
        if (!records)
            return -ENOMEM;
    }
    int err = 0, bytes = (int)(sizeof(i) + i.records * record_size());
    if (size >= sizeof(i))
        err = copy_to_user(buffer, &i, sizeof(i));
    if (!err && i.records > most)
        err = -ENOSPC;
    if (!err && size < sizeof(i))
        err = -ENOSPC;
    if (!err)
        err = copy_to_user(buffer + sizeof(i), records,
                           i.records * record_size());
    free_records(records, pages);
    return err ? err : bytes;
}

int call_trace_read(u32 buffer, u32 size, bool reset)
{
    int result = -ESHUTDOWN;
    mutex_lock(&trace_mutex);
    if (trace.exists && calls_are_counted(trace.options.mode))
        result = read_trace(buffer, size, reset);
    mutex_unlock(&trace_mutex);
    return result;
}

int call_trace_reset(void)
{
    int err = -ESHUTDOWN;
    mutex_lock(&trace_mutex);
    if (trace.exists && calls_are_counted(trace.options.mode)) {
        struct calls_info i;
        calls_report(&i, NULL, -1u, true);
        err = 0;
    }
    mutex_unlock(&trace_mutex);
    return err;
}

static void fill_name(struct calls_name *n)
{
    const char *name = ksym_lookup(moved_address(n->address), NULL);
    if (!name)
        name = "";
    n->length = MIN(strlen(name), sizeof(n->name) - 1);
    memcpy(n->name, name, n->length);
    memset(n->name + n->length, 0, sizeof(n->name) - n->length);
}

int call_trace_names(u32 list, u32 count)
{
    struct calls_name n;
    if (count > CALLS_NAMES_MAX)
        return -EINVAL;
    for (u32 end = list + count * sizeof(n); list != end; list += sizeof(n)) {
        if (copy_from_user(&n.address, list, sizeof(n.address)))
            return -EFAULT;
        fill_name(&n);
        if (copy_to_user(list, &n, sizeof(n)))
            return -EFAULT;
    }
    return 0;
}
