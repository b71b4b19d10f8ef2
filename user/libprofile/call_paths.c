#include "call_paths.h"
#include "user/libread/sort.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 64u
#define HASH_FACTOR 2654435769u // 2^32 / golden ratio (Knuth 6.4)

bool call_is_root(uint32_t function)
{
    return function && function <= CALLS_ROOTS;
}

const char *call_root_name(uint32_t function)
{
    static const char *const names[] = {
        [CALLS_ROOT_THREADS] = "[threads]",
        [CALLS_ROOT_INTERRUPTS] = "[interrupts]",
        [CALLS_ROOT_IDLE] = "[idle]",
    };
    return call_is_root(function) ? names[function] : NULL;
}

// --- merging ----------------------------------------------------------------

static uint32_t *bucket_of(const struct call_paths *p, uint32_t parent,
                           uint32_t function)
{
    uint32_t hash = (parent * HASH_FACTOR ^ function) * HASH_FACTOR;

    return &p->buckets[(hash >> 8) & (p->room - 1)];
}

// Enough room for `records` paths.
static bool make_room(struct call_paths *p, uint32_t records)
{
    p->room = ROOM_MIN;
    while (p->room < records && p->room < 1u << 31)
        p->room *= 2;
    p->list = calloc(p->room, sizeof(*p->list));
    p->buckets = malloc(p->room * sizeof(*p->buckets));
    if (!p->list || !p->buckets)
        return false;
    memset(p->buckets, 0xff, p->room * sizeof(*p->buckets));
    return true;
}

// The path of `function` called by `parent`; a root's parent is CALL_PATH_NONE.
static uint32_t find_path(const struct call_paths *p, uint32_t parent,
                          uint32_t function)
{
    bool root = parent == CALL_PATH_NONE;
    uint32_t i = *bucket_of(p, parent, function);

    while (i != CALL_PATH_NONE && (p->list[i].function != function ||
                                   p->list[i].parent != (root ? i : parent)))
        i = p->list[i].next;
    return i;
}

static struct call_path *path_of(struct call_paths *p, uint32_t parent,
                                 uint32_t function)
{
    bool root = parent == CALL_PATH_NONE;
    uint32_t known = find_path(p, parent, function);

    if (known != CALL_PATH_NONE)
        return &p->list[known];
    uint32_t *bucket = bucket_of(p, parent, function);
    struct call_path *new = &p->list[p->count];
    *new = (struct call_path){
        .function = function,
        .parent = root ? p->count : parent,
        .depth = root ? 0 : p->list[parent].depth + 1,
        .shortest = UINT64_MAX,
        .next = *bucket,
    };
    *bucket = p->count++;
    return new;
}

static void add(struct call_path *to, const struct calls_node *n)
{
    to->open += n->open;
    to->calls += n->calls;
    to->own += n->own;
    to->tracing += n->tracing;
    to->blocked += n->blocked;
    to->interrupted += n->interrupted;
    if (n->longest > to->longest)
        to->longest = n->longest;
    if (n->shortest != UINT32_MAX && n->shortest < to->shortest)
        to->shortest = n->shortest;
}

static const char *problem_of(const struct calls_node *records, uint32_t i)
{
    const struct calls_node *n = &records[i];

    if (call_is_root(n->function))
        return n->parent == i ? NULL : "a root has a caller";
    if (n->parent >= i)
        return "a caller is behind what it calls";
    if (records[n->parent].cpu != n->cpu)
        return "a caller is of another CPU";
    return NULL;
}

// `path_at`: of each record so far, its path.
static const char *merge_all(struct call_paths *p,
                             const struct calls_node *records, uint32_t count,
                             int cpu, uint32_t *path_at)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct calls_node *n = &records[i];
        const char *problem = problem_of(records, i);
        if (problem)
            return problem;
        if (cpu >= 0 && n->cpu != (uint32_t)cpu)
            continue;
        struct call_path *path =
            path_of(p, n->parent == i ? CALL_PATH_NONE : path_at[n->parent],
                    n->function);
        path_at[i] = (uint32_t)(path - p->list);
        add(path, n);
    }
    return NULL;
}

// --- times ------------------------------------------------------------------

// What of `calls` times `cycles` can be removed from `own` becomes `tracing`.
static void remove_part(struct call_path *p, uint64_t calls, uint32_t cycles)
{
    uint64_t part;

    if (__builtin_mul_overflow(calls, cycles, &part) || part > p->own)
        part = p->own;
    p->own -= part;
    p->tracing += part;
}

static void remove_tracing(struct call_paths *p, const struct calls_info *info)
{
    for (uint32_t i = 0; i < p->count; i++) {
        struct call_path *path = &p->list[i];
        if (path->parent == i)
            continue;
        remove_part(path, path->calls, info->outside_own);
        remove_part(&p->list[path->parent], path->calls, info->outside_caller);
    }
}

static void sum_up(struct call_paths *p)
{
    for (uint32_t i = p->count; i-- > 0;) {
        struct call_path *path = &p->list[i];
        path->total += path->own;
        if (path->parent != i)
            p->list[path->parent].total += path->total;
    }
}

const char *call_paths_merge(struct call_paths *p,
                             const struct calls_info *info,
                             const struct calls_node *records, int cpu)
{
    *p = (struct call_paths){ 0 };
    uint32_t *path_at = calloc(info->records + 1, sizeof(*path_at));
    const char *problem = "not enough memory";

    if (path_at && make_room(p, info->records))
        problem = merge_all(p, records, info->records, cpu, path_at);
    free(path_at);
    if (problem) {
        call_paths_free(p);
        return problem;
    }
    remove_tracing(p, info);
    sum_up(p);
    return NULL;
}

void call_paths_free(struct call_paths *p)
{
    free(p->list);
    free(p->buckets);
    *p = (struct call_paths){ 0 };
}

// --- functions --------------------------------------------------------------

static bool is_outermost(const struct call_paths *p, uint32_t i)
{
    uint32_t function = p->list[i].function;

    while (p->list[i].parent != i) {
        i = p->list[i].parent;
        if (p->list[i].function == function)
            return false;
    }
    return true;
}

static void add_path(struct call_path *to, const struct call_path *path,
                     bool outermost)
{
    to->open += path->open;
    to->calls += path->calls;
    to->own += path->own;
    to->total += outermost ? path->total : 0;
    to->tracing += path->tracing;
    to->blocked += path->blocked;
    to->interrupted += path->interrupted;
    if (path->longest > to->longest)
        to->longest = path->longest;
    if (path->shortest < to->shortest)
        to->shortest = path->shortest;
}

struct call_paths call_functions(const struct call_paths *p)
{
    struct call_paths functions = { 0 };

    if (!make_room(&functions, p->count)) {
        call_paths_free(&functions);
        return functions;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        const struct call_path *path = &p->list[i];
        if (path->parent != i)
            add_path(path_of(&functions, CALL_PATH_NONE, path->function), path,
                     is_outermost(p, i));
    }
    return functions;
}

uint32_t call_functions_find(const struct call_paths *functions,
                             uint32_t function)
{
    return find_path(functions, CALL_PATH_NONE, function);
}

// --- arcs -------------------------------------------------------------------

static int by_ends(const void *a, const void *b)
{
    const struct calls_arc *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

struct calls_arc *call_arcs_merge(const struct calls_info *info,
                                  const struct calls_arc *records, int cpu,
                                  uint32_t *count)
{
    struct calls_arc *list = calloc(info->records + 1, sizeof(*list));
    uint32_t n = 0, kept = 0;

    *count = 0;
    if (!list)
        return NULL;
    for (uint32_t i = 0; i < info->records; i++) {
        if (cpu < 0 || records[i].cpu == (uint32_t)cpu)
            list[n++] = records[i];
    }
    qsort(list, n, sizeof(*list), by_ends);
    for (uint32_t i = 0; i < n; i++) {
        if (kept && by_ends(&list[kept - 1], &list[i]) == 0)
            list[kept - 1].count += list[i].count;
        else
            list[kept++] = list[i];
    }
    *count = kept;
    return list;
}
