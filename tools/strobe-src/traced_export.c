// Traces of calls for speedscope ("evented": each path once, as long as it took
// in all) and for callgrind_annotate and kcachegrind (exact calls).
#include "traced.h"

#include "lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"
#define NO_FILE "???" // as callgrind writes it

static const char *name_of(const struct export *e, uint32_t function)
{
    const struct call_printing *c = &e->profile->traced->printing;

    return c->name(c->arg, function);
}

static void put_string(FILE *out, const char *text)
{
    json_string(out, text, strlen(text));
}

// --- speedscope -------------------------------------------------------------

struct evented {
    struct export *e;
    const struct call_paths *paths;
    const uint32_t *order;
    struct call_paths frames; // of each function
    uint32_t *stack, depth;   // open paths
    uint64_t *ends;           // of them, in cycles from the begin
    const char *comma;
};

static uint64_t ns(const struct evented *v, uint64_t cycles)
{
    return (uint64_t)call_ns(&v->e->profile->traced->printing, cycles);
}

static void put_event(struct evented *v, char type, uint32_t path, uint64_t at)
{
    uint32_t frame =
        call_functions_find(&v->frames, v->paths->list[path].function);

    fprintf(v->e->out, "%s{\"type\":\"%c\",\"frame\":%u,\"at\":%" PRIu64 "}",
            v->comma, type, frame, ns(v, at));
    v->comma = ",\n";
}

static void close_to(struct evented *v, uint32_t depth)
{
    while (v->depth > depth) {
        v->depth--;
        put_event(v, 'C', v->stack[v->depth], v->ends[v->depth]);
    }
}

// The paths of one root, order[from] on. A path's callees are at its end,
// behind its own time.
static void put_root(struct evented *v, uint32_t from)
{
    const struct call_path *list = v->paths->list;
    const struct call_path *root = &list[v->order[from]];
    uint64_t all = root->total - root->own, at = 0;
    uint32_t i = from + 1;

    fprintf(v->e->out, "{\"type\":\"evented\",\"name\":");
    put_string(v->e->out, call_root_name(root->function));
    fprintf(v->e->out,
            ",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":%" PRIu64
            ",\"events\":[\n",
            ns(v, all));
    v->comma = "";
    for (; i < v->paths->count && list[v->order[i]].depth; i++) {
        const struct call_path *path = &list[v->order[i]];
        close_to(v, path->depth - 1);
        put_event(v, 'O', v->order[i], at);
        v->stack[v->depth] = v->order[i];
        v->ends[v->depth++] = at + path->total;
        at += path->own;
    }
    close_to(v, 0);
    fputs("]}", v->e->out);
}

// A profile of each root: threads first.
static void put_roots(struct evented *v)
{
    const char *comma = "";

    for (uint32_t root = 1; root <= CALLS_ROOTS; root++) {
        for (uint32_t i = 0; i < v->paths->count; i++) {
            if (v->paths->list[v->order[i]].function != root)
                continue;
            fputs(comma, v->e->out);
            put_root(v, i);
            comma = ",\n";
        }
    }
}

static void put_frames(const struct evented *v)
{
    for (uint32_t i = 0; i < v->frames.count; i++) {
        fprintf(v->e->out, "%s{\"name\":", i ? ",\n" : "");
        put_string(v->e->out, name_of(v->e, v->frames.list[i].function));
        fputs(",\"file\":\"[kernel]\"}", v->e->out);
    }
}

void traced_speedscope(struct export *e)
{
    struct call_paths paths = traced_paths(e->profile, e->filter);
    uint32_t *order =
        call_paths_order(&e->profile->traced->printing, &paths, true);
    struct evented v = {
        .e = e,
        .paths = &paths,
        .order = order,
        .frames = call_functions(&paths),
        .stack = enough(calloc(paths.count + 1, sizeof(*v.stack))),
        .ends = enough(calloc(paths.count + 1, sizeof(*v.ends))),
    };

    enough(v.frames.list);
    fprintf(e->out,
            "{\"$schema\":\"%s\",\"exporter\":\"strobe\",\"name\":", SCHEMA);
    put_string(e->out, profile_title(e->profile));
    fputs(",\n\"shared\":{\"frames\":[\n", e->out);
    put_frames(&v);
    fputs("\n]},\n\"profiles\":[\n", e->out);
    put_roots(&v);
    fputs("\n]}\n", e->out);
    free(v.stack);
    free(v.ends);
    call_paths_free(&v.frames);
    free(order);
    call_paths_free(&paths);
}

// --- callgrind --------------------------------------------------------------

// What a function spends itself (callee 0), or its calls of one.
struct cost {
    uint32_t function, callee;
    uint64_t calls, own, blocked, interrupted, tracing;
};

static int by_functions(const void *a, const void *b)
{
    const struct cost *x = a, *y = b;

    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    return x->callee < y->callee ? -1 : x->callee > y->callee;
}

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

// Sums of each path and all that it calls.
static struct cost *inclusive_costs(const struct call_paths *p)
{
    struct cost *sum = enough(calloc(p->count + 1, sizeof(*sum)));

    for (uint32_t i = p->count; i-- > 0;) {
        const struct call_path *path = &p->list[i];
        sum[i].own += path->own;
        sum[i].blocked += path->blocked;
        sum[i].interrupted += path->interrupted;
        sum[i].tracing += path->tracing;
        if (path->parent == i)
            continue;
        struct cost *caller = &sum[path->parent];
        caller->own += sum[i].own;
        caller->blocked += sum[i].blocked;
        caller->interrupted += sum[i].interrupted;
        caller->tracing += sum[i].tracing;
    }
    return sum;
}

// Two of each path: its own, and its caller's call, which has the time of the
// outermost call only. Roots have no time of their own.
static struct cost *list_costs(const struct call_paths *p, uint32_t *count)
{
    struct cost *list = enough(calloc(2 * (size_t)p->count + 1, sizeof(*list)));
    struct cost *sum = inclusive_costs(p);
    uint32_t n = 0, kept = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        const struct call_path *path = &p->list[i];
        if (path->parent == i)
            continue;
        list[n++] = (struct cost){
            path->function, 0, 0, path->own, path->blocked, path->interrupted,
            path->tracing
        };
        struct cost call = is_outermost(p, i) ? sum[i] : (struct cost){ 0 };
        call.function = p->list[path->parent].function;
        call.callee = path->function;
        call.calls = path->calls;
        list[n++] = call;
    }
    free(sum);
    qsort(list, n, sizeof(*list), by_functions);
    for (uint32_t i = 0; i < n; i++) {
        struct cost *last = kept ? &list[kept - 1] : NULL;
        if (!last || by_functions(last, &list[i]) != 0) {
            list[kept++] = list[i];
            continue;
        }
        last->calls += list[i].calls;
        last->own += list[i].own;
        last->blocked += list[i].blocked;
        last->interrupted += list[i].interrupted;
        last->tracing += list[i].tracing;
    }
    *count = kept;
    return list;
}

static struct line line_of(const struct export *e, uint32_t function)
{
    if (call_is_root(function))
        return (struct line){ 0 };
    return lines_find(profile_lines(e->profile),
                      (struct place){ IMAGE_KERNEL, function });
}

static const char *file_of(const struct export *e, struct line l)
{
    return l.file ? lines_short_path(e->profile, l.file) : NO_FILE;
}

static void put_values(const struct export *e, const struct cost *c)
{
    const struct call_printing *p = &e->profile->traced->printing;

    fprintf(e->out, " %.0f %.0f %.0f %.0f\n", call_ns(p, c->own),
            call_ns(p, c->blocked), call_ns(p, c->interrupted),
            call_ns(p, c->tracing));
}

static void put_cost(const struct export *e, const struct cost *c, bool first)
{
    struct line at = line_of(e, c->function);

    if (first)
        fprintf(e->out, "\nob=[kernel]\nfl=%s\nfn=%s\n", file_of(e, at),
                name_of(e, c->function));
    // callgrind_annotate expects a cost of its own in each function.
    if (first && c->callee)
        fprintf(e->out, "%u 0\n", at.line);
    if (c->callee) {
        struct line to = line_of(e, c->callee);
        fprintf(e->out, "cob=[kernel]\ncfi=%s\ncfn=%s\ncalls=%" PRIu64 " %u\n",
                file_of(e, to), name_of(e, c->callee), c->calls, to.line);
    }
    fprintf(e->out, "%u", at.line);
    put_values(e, c);
}

void traced_callgrind(struct export *e)
{
    struct call_paths paths = traced_paths(e->profile, e->filter);
    struct cost all = { 0 };
    uint32_t count;
    struct cost *list = list_costs(&paths, &count);

    lines_need(profile_lines(e->profile));
    fprintf(e->out,
            "# callgrind format\nversion: 1\ncreator: strobe\ncmd: %s\n",
            profile_title(e->profile));
    fputs("positions: line\nevents: Nanoseconds Blocked Interrupted Tracing\n",
          e->out);
    for (uint32_t i = 0; i < count; i++) {
        put_cost(e, &list[i], !i || list[i - 1].function != list[i].function);
        if (list[i].callee)
            continue;
        all.own += list[i].own;
        all.blocked += list[i].blocked;
        all.interrupted += list[i].interrupted;
        all.tracing += list[i].tracing;
    }
    fputs("\ntotals:", e->out);
    put_values(e, &all);
    free(list);
    call_paths_free(&paths);
}
