// Helpers of the tests of call tracing: which functions, begin, records.
#pragma once

#include "arch/call_trace.h"
#include "arch/text.h"
#include "kernel/profile/call_trace.h"
#include "kernel/trace/calls.h"
#include "lib/string.h"
#include "tests/kernel/load_helpers.h"

// The tests' functions have no sites, but these.
#define TRACED NOINLINE __attribute__((patchable_function_entry(5)))
#define RECORDS_MOST 40000u

// kmalloc'ed memory for begin(): these, ascending. NULL: no memory.
static inline u32 *list_of(u32 *sites, u32 count)
{
    u32 *list = kmalloc(count * sizeof(u32));
    for (u32 i = 1; i < count; i++) // ascending
        for (u32 j = i; j && sites[j] < sites[j - 1]; j--) {
            u32 site = sites[j];
            sites[j] = sites[j - 1];
            sites[j - 1] = site;
        }
    if (list)
        memcpy(list, sites, count * sizeof(u32));
    return list;
}

static inline u32 *all_functions(u32 *count)
{
    *count = (u32)(text_entries_end - text_entries_start);
    u32 *list = kmalloc(*count * sizeof(u32));
    if (list)
        memcpy(list, text_entries_start, *count * sizeof(u32));
    return list;
}

static inline int begin(u32 mode, u32 *functions, u32 count, u32 depth)
{
    struct calls_options o = {
        .size = sizeof(o),
        .mode = mode,
        .depth = depth,
        .function_count = count,
    };
    return functions ? call_trace_begin_with(&o, functions) : -1;
}

struct report {
    struct calls_info info;
    u32 pages;
    struct calls_node *nodes;
};

static inline bool get(struct report *r, bool reset)
{
    r->pages = RECORDS_MOST * sizeof(*r->nodes) / PAGE_SIZE;
    r->nodes = vmap_alloc(r->pages, PROT_R | PROT_W, FRAME_BUFFER);
    if (r->nodes)
        calls_report(&r->info, r->nodes, RECORDS_MOST, reset);
    return r->nodes && r->info.records <= RECORDS_MOST;
}

static inline void put(struct report *r)
{
    if (r->nodes)
        vmap_free(r->nodes, r->pages);
}

// The sum of the records of a path, which is given innermost function first.
static inline struct calls_node sum_of(const struct report *r,
                                       const void *const *path)
{
    struct calls_node sum = { .calls = 0 };
    for (u32 i = 0; i < r->info.records; i++) {
        const struct calls_node *n = &r->nodes[i];
        const void *const *p = path;
        for (; *p && n->function == linked_address((u32)*p); p++)
            n = &r->nodes[n->parent];
        if (*p || n->function > CALLS_ROOTS)
            continue;
        sum.calls += r->nodes[i].calls;
        sum.own += r->nodes[i].own;
        sum.open += r->nodes[i].open;
        sum.longest = MAX(sum.longest, r->nodes[i].longest);
    }
    return sum;
}
#define SUM_OF(r, ...) sum_of(r, (const void *const[]){ __VA_ARGS__, NULL })
#define CALLS_OF(r, ...) ((u32)SUM_OF(r, __VA_ARGS__).calls)

// In the time of one CPU; checked kernels need most of it for an NMI.
static inline u64 nmi_period(void)
{
    return 300 * NSEC_PER_USEC * cpu_count;
}

static inline struct timer *reserve_nmis(void)
{
    struct timer *t;
    int err = timer_reserve(TIMER_PERIODIC | TIMER_NMI, nmi_period(),
                            nmi_period(), "a test", &t);
    return err ? NULL : t;
}
