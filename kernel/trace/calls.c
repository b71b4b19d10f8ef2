// A trace of calls: its tables, patching the sites, and reports.
//
// The sites are patched after all CPUs have begun to trace, and restored before
// they cease to. Everything else that CPUs see at once, they see because the
// machine is stopped meanwhile.
#include "kernel/trace/calls.h"
#include "arch/cpu.h"
#include "arch/mmu.h"
#include "arch/nmi.h"
#include "arch/text.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/stop_machine.h"
#include "kernel/trace/patch.h"
#include "lib/string.h"

static const u32 *traced; // sites
static u32 traced_count;
static u64 began, elapsed; // TSC; cycles of the earlier intervals

// --- tables -----------------------------------------------------------------

static u32 pages_for(u32 bytes)
{
    return (bytes + PAGE_SIZE - 1) / PAGE_SIZE;
}

static void *table_alloc(u32 bytes, int flags)
{
    return vmap_alloc(pages_for(bytes), PROT_R | PROT_W, FRAME_BUFFER | flags);
}

static void table_free(void *p, u32 bytes)
{
    if (p)
        vmap_free(p, pages_for(bytes));
}

static u32 table_entries; // of each CPU

static u32 node_bytes(void)
{
    return table_entries * sizeof(struct call_node);
}

static u32 bucket_bytes(void)
{
    return table_entries * sizeof(struct call_node *);
}

static u32 arc_bytes(void)
{
    return table_entries * sizeof(struct call_arc);
}

static bool alloc_tables(struct call_cpu *c, u32 mode)
{
    c->arcs_used = c->nodes_used = 0;
    c->overflow = c->too_deep = c->no_frames = 0;
    if (mode == CALLS_ARCS) {
        c->most = table_entries - 1;
        c->arc_mask = arc_bytes() - sizeof(struct call_arc);
        c->all_arcs = table_alloc(arc_bytes(), 0);
        return c->all_arcs;
    }
    if (!calls_are_counted(mode))
        return true;
    c->most = table_entries;
    c->bucket_mask = bucket_bytes() - sizeof(struct call_node *);
    c->nodes = table_alloc(node_bytes(), VMAP_UNZEROED);
    c->buckets = table_alloc(bucket_bytes(), 0);
    if (!c->nodes || !c->buckets)
        return false;
    call_nodes_init(c);
    return true;
}

static void free_tables(struct call_cpu *c)
{
    table_free(c->all_arcs, arc_bytes());
    table_free(c->nodes, node_bytes());
    table_free(c->buckets, bucket_bytes());
    c->all_arcs = NULL;
    c->nodes = NULL;
    c->buckets = NULL;
    c->ring = NULL;
    c->nodes_used = c->arcs_used = 0;
}

int calls_alloc(const struct call_trace *what, u32 entries,
                struct trace_ring *const *rings)
{
    assert(!call_trace.running && !call_trace.mode);
    bool enough = true;
    table_entries = entries;
    elapsed = 0;
    for (u32 i = 0; i < cpu_count; i++) {
        cpus[i]->calls.ring = rings ? rings[i] : NULL;
        enough = enough && alloc_tables(&cpus[i]->calls, what->mode);
    }
    call_trace.mode = what->mode;
    call_trace.except = what->except;
    WRITE_ONCE(call_trace.task, what->task);
    WRITE_ONCE(call_trace.depth,
               calls_have_frames(what->mode) ? what->depth : 0);
    branch_set(&call_tracing, true);
    if (what->mode == CALLS_PATHS)
        nmi_watch_stubs(true);
    if (enough)
        return 0;
    calls_free();
    return -ENOMEM;
}

void calls_free(void)
{
    assert(!call_trace.running);
    WRITE_ONCE(call_trace.depth, 0);
    branch_set(&call_tracing, false);
    if (call_trace.mode == CALLS_PATHS)
        nmi_watch_stubs(false);
    call_stacks_free();
    for (u32 i = 0; i < cpu_count; i++)
        free_tables(&cpus[i]->calls);
    call_trace = (struct call_trace){ .mode = CALLS_NONE };
}

// --- start and stop ---------------------------------------------------------

static void begin(void *arg UNUSED)
{
    began = rdtsc();
    call_stacks_begin(began);
    call_trace.running = true;
}

static void end(void *sp)
{
    u64 now = rdtsc();
    if (call_trace.mode == CALLS_PATHS) {
        call_stacks_charge(now, 1);
        call_stacks_count_open();
    }
    call_stacks_end((u32)sp);
    call_trace.running = false;
    elapsed += now - began;
}

static void patch(bool on)
{
    static const char *const stubs[] = {
        [CALLS_ARCS] = trace_arc,
        [CALLS_PATHS] = trace_path,
        [CALLS_EVENTS] = trace_enter,
        [CALLS_ENTRIES] = trace_call,
    };
    text_patch(traced, traced_count, (u32)stubs[call_trace.mode], on);
}

void calls_start(const u32 *sites, u32 count)
{
    assert(call_trace.mode && !call_trace.running);
    traced = sites;
    traced_count = count;
    stop_machine(begin, NULL);
    patch(true);
}

void calls_stop(void)
{
    assert(call_trace.running);
    patch(false);
    stop_machine(end, (void *)frame_pointer());
}

// --- reports ----------------------------------------------------------------

struct report {
    struct calls_info *info;
    void *records;
    u32 max;
    bool reset;
};

static struct calls_arc *report_arcs(const struct call_cpu *c, u32 cpu,
                                     struct calls_arc *out)
{
    for (u32 i = 0; i < table_entries; i++) {
        const struct call_arc *a = &c->all_arcs[i];
        if (a->from)
            *out++ = (struct calls_arc){
                .from = linked_address(a->from),
                .to = linked_address(a->to) - TEXT_SITE,
                .count = a->count,
                .cpu = cpu,
            };
    }
    return out;
}

static void report_nodes(const struct call_cpu *c, u32 cpu,
                         struct calls_node *out, u32 index)
{
    for (u32 i = 0; i < c->nodes_used; i++) {
        const struct call_node *n = &c->nodes[i];
        bool root = i < CALLS_ROOTS;
        out[i] = (struct calls_node){
            .function =
                root ? n->function : linked_address(n->function) - TEXT_SITE,
            .parent = index + (u32)(n->parent - c->nodes),
            .cpu = cpu,
            .open = n->open,
            .calls = n->calls,
            .own = n->own,
            .tracing = n->tracing,
            .blocked = n->blocked,
            .interrupted = n->interrupted,
            .longest = root ? 0 : n->longest,
            .shortest = root ? -1u : n->shortest,
        };
    }
}

static void reset_counts(struct call_cpu *c)
{
    c->overflow = c->too_deep = c->no_frames = 0;
    if (c->all_arcs)
        memset(c->all_arcs, 0, arc_bytes());
    c->arcs_used = 0;
    for (u32 i = 0; i < c->nodes_used; i++) {
        struct call_node *n = &c->nodes[i];
        n->calls = n->own = n->tracing = n->longest = 0;
        n->blocked = n->interrupted = 0;
        n->shortest = -1u;
    }
}

static u32 used(const struct call_cpu *c)
{
    return call_trace.mode == CALLS_ARCS ? c->arcs_used : c->nodes_used;
}

static void report_info(struct calls_info *info, u64 now)
{
    info->elapsed = elapsed + (call_trace.running ? now - began : 0);
    info->records = info->most = 0;
    info->overflow = info->too_deep = info->no_frames = 0;
    for (u32 i = 0; i < cpu_count; i++) {
        const struct call_cpu *c = &cpus[i]->calls;
        info->records += used(c);
        info->most = MAX(info->most, used(c));
        info->overflow += c->overflow;
        info->too_deep += c->too_deep;
        info->no_frames += c->no_frames;
    }
}

static void report_records(void *records)
{
    struct calls_arc *arcs = records;
    struct calls_node *nodes = records;
    u32 n = 0;
    for (u32 i = 0; i < cpu_count; i++) {
        const struct call_cpu *c = &cpus[i]->calls;
        if (call_trace.mode == CALLS_ARCS)
            arcs = report_arcs(c, i, arcs);
        else
            report_nodes(c, i, nodes + n, n);
        n += used(c);
    }
}

static void report(void *arg)
{
    const struct report *r = arg;
    u64 now = rdtsc();
    bool open = call_trace.running && call_trace.mode == CALLS_PATHS;
    report_info(r->info, now);
    if (open) {
        call_stacks_charge(now, 1);
        call_stacks_count_open();
    }
    if (r->records && r->info->records <= r->max)
        report_records(r->records);
    bool reset = r->reset && r->info->records <= r->max;
    if (reset) {
        for (u32 i = 0; i < cpu_count; i++)
            reset_counts(&cpus[i]->calls);
        began = now;
        elapsed = 0;
    }
    if (open && reset)
        call_stacks_restart(now);
    else if (open)
        call_stacks_charge(now, -1);
}

void calls_report(struct calls_info *info, void *records, u32 max, bool reset)
{
    assert(call_trace.mode);
    struct report r = { info, records, max, reset };
    stop_machine(report, &r);
}
