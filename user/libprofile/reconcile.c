#include "reconcile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- rows -------------------------------------------------------------------

struct making {
    struct reconciliation *r;
    struct samples *s;
    const struct functions *traced;
    uint32_t room;
};

static struct reconciled_row *row_of(struct making *m, uint32_t function,
                                     const char *name, size_t size, bool traced)
{
    struct reconciliation *r = m->r;

    for (uint32_t i = 0; i < r->count; i++) {
        if (r->rows[i].function == function)
            return &r->rows[i];
    }
    if (r->count == m->room) {
        uint32_t room = m->room ? 2 * m->room : 256;
        void *rows = realloc(r->rows, room * sizeof(*r->rows));
        if (!rows)
            return NULL;
        r->rows = rows;
        m->room = room;
    }
    struct reconciled_row *row = &r->rows[r->count++];
    *row = (struct reconciled_row){ .function = function, .traced = traced };
    snprintf(row->name, sizeof(row->name), "%.*s", (int)size, name);
    return row;
}

static struct reconciled_row *row_of_traced(struct making *m,
                                            const struct function *f)
{
    return row_of(m, f->address, f->name, strlen(f->name), true);
}

static struct reconciled_row *row_of_code(struct making *m, uint32_t address)
{
    const struct function *f = functions_find(m->traced, address);
    const struct symbol *symbol =
        images_symbol(&m->s->images, IMAGE_KERNEL, address);
    static const char unknown[] = "[unknown]";

    if (f)
        return row_of_traced(m, f);
    return symbol ? row_of(m, symbol->start, symbol->name, symbol->name_size,
                           false)
                  : row_of(m, 0, unknown, sizeof(unknown) - 1, false);
}

// --- samples ----------------------------------------------------------------

static bool is_stub(struct samples *s, uint32_t address)
{
    static const char *const stubs[] = { "trace_arc", "trace_path",
                                         "trace_exit" };
    const struct symbol *symbol =
        images_symbol(&s->images, IMAGE_KERNEL, address);

    for (size_t i = 0; symbol && i < sizeof(stubs) / sizeof(stubs[0]); i++) {
        if (symbol->name_size == strlen(stubs[i]) &&
            memcmp(symbol->name, stubs[i], symbol->name_size) == 0)
            return true;
    }
    return false;
}

// The innermost traced function of a chain, or NULL: none, or (*stub) a stub is
// further in. (The call of the stub, a function's first instruction, is the
// function's: untraced it has a NOP there, which is in its own time.)
static const struct function *innermost(struct making *m, uint32_t node,
                                        bool *stub)
{
    const struct chain_node *nodes = m->s->chains.nodes;

    *stub = false;
    for (; node != CHAIN_ROOT && nodes[node].place.image == IMAGE_KERNEL;
         node = nodes[node].parent) {
        uint32_t address = nodes[node].place.address;
        const struct function *f = functions_find(m->traced, address);
        if (f)
            return f;
        *stub = is_stub(m->s, address);
        if (*stub)
            break;
    }
    return NULL;
}

static bool add_kernel(struct making *m, const struct sample_count *c)
{
    struct reconciliation *r = m->r;
    bool stub;
    struct reconciled_row *in =
        row_of_code(m, m->s->chains.nodes[c->chain].place.address);

    if (!in)
        return false;
    in->in += c->samples;
    r->kernel += c->samples;
    const struct function *f = innermost(m, c->chain, &stub);
    if (stub) {
        r->stubs += c->samples;
    } else if (c->mode == MODE_IRQ) {
        r->interrupts += c->samples;
    } else if (!f) {
        r->outside += c->samples;
    } else {
        struct reconciled_row *row = row_of_traced(m, f);
        if (!row)
            return false;
        row->samples += c->samples;
        r->compared += c->samples;
    }
    return true;
}

static bool add_samples(struct making *m)
{
    const struct samples *s = m->s;

    for (uint32_t i = 0; i < s->count; i++) {
        const struct sample_count *c = &s->counts[i];
        if (c->mode == MODE_USER)
            m->r->user += c->samples;
        else if (c->mode == MODE_IDLE)
            m->r->idle += c->samples;
        else if (!add_kernel(m, c))
            return false;
    }
    return true;
}

// --- the trace --------------------------------------------------------------

static bool is_of_threads(const struct call_paths *p, uint32_t i)
{
    while (p->list[i].parent != i)
        i = p->list[i].parent;
    return p->list[i].function == CALLS_ROOT_THREADS;
}

static bool add_calls(struct making *m, const struct call_paths *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const struct call_path *path = &p->list[i];
        if (path->parent == i || !is_of_threads(p, i))
            continue;
        struct reconciled_row *row = row_of_code(m, path->function);
        if (!row)
            return false;
        row->calls += path->calls;
        row->own += path->own;
        m->r->calls += path->calls;
        m->r->own += path->own;
    }
    return true;
}

// --- the result -------------------------------------------------------------

static double part(uint64_t n, uint64_t of)
{
    return of ? (double)n / of : 0;
}

double reconciled_sampled(const struct reconciliation *r,
                          const struct reconciled_row *row)
{
    return part(row->samples, r->compared);
}

double reconciled_traced(const struct reconciliation *r,
                         const struct reconciled_row *row)
{
    return part(row->own, r->own);
}

struct interval reconciled_interval(const struct reconciliation *r,
                                    const struct reconciled_row *row)
{
    return binomial_interval(r->compared, reconciled_sampled(r, row));
}

double reconciled_sigmas(const struct reconciliation *r,
                         const struct reconciled_row *row)
{
    double share = reconciled_traced(r, row), n = r->compared;
    double off = row->samples - n * share;

    return off == 0 ? 0 : off / sqrt(n * share * (1 - share));
}

double reconciled_chance(const struct reconciliation *r,
                         const struct reconciled_row *row)
{
    return binomial_chance(r->compared, row->samples,
                           reconciled_traced(r, row));
}

bool reconciled_judged(const struct reconciliation *r,
                       const struct reconciled_row *row)
{
    return reconciled_traced(r, row) >= RECONCILED_LEAST;
}

static void add_others(struct reconciliation *r)
{
    struct reconciled_row *all = &r->others;

    *all = (struct reconciled_row){ .name = "all others", .traced = true };
    for (uint32_t i = 0; i < r->count; i++) {
        const struct reconciled_row *row = &r->rows[i];
        if (!row->traced || reconciled_judged(r, row))
            continue;
        all->in += row->in;
        all->samples += row->samples;
        all->calls += row->calls;
        all->own += row->own;
    }
}

static void judge(struct reconciliation *r, const struct reconciled_row *row)
{
    double chance = reconciled_chance(r, row);

    r->judged++;
    r->agreeing += fabs(reconciled_sigmas(r, row)) <= RECONCILED_SIGMAS;
    if (!r->worst || chance < r->chance) {
        r->worst = row;
        r->chance = chance;
    }
}

static void judge_all(struct reconciliation *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->rows[i].traced && reconciled_judged(r, &r->rows[i]))
            judge(r, &r->rows[i]);
    }
    if (reconciled_judged(r, &r->others))
        judge(r, &r->others);
    r->chance = r->worst ? fmin(r->chance * r->judged, 1) : 1;
    r->agree = r->chance >= RECONCILED_CHANCE;
}

static double weight(const struct reconciliation *r,
                     const struct reconciled_row *row)
{
    return row->traced ? reconciled_traced(r, row) : part(row->in, r->kernel);
}

static const struct reconciliation *sorted; // qsort passes no argument

static int by_weight(const void *a, const void *b)
{
    double x = weight(sorted, a), y = weight(sorted, b);

    return x < y ? 1 : x > y ? -1 : 0;
}

bool reconcile(struct reconciliation *r, struct samples *s,
               const struct functions *traced, const struct call_paths *p)
{
    struct making m = { r, s, traced, 0 };

    *r = (struct reconciliation){ 0 };
    if (images_load(&s->images, IMAGE_KERNEL)->problem || !add_samples(&m) ||
        !add_calls(&m, p)) {
        reconciliation_free(r);
        return false;
    }
    add_others(r);
    sorted = r;
    qsort(r->rows, r->count, sizeof(*r->rows), by_weight);
    judge_all(r);
    return true;
}

void reconciliation_free(struct reconciliation *r)
{
    free(r->rows);
    *r = (struct reconciliation){ 0 };
}
