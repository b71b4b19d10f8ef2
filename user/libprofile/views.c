#include "views.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

bool view_passes(const struct sample_count *c, const struct view_filter *f)
{
    return !(f->by_task && c->task != f->task) &&
           !(f->by_cpu && c->cpu != f->cpu) &&
           !(f->by_event && c->event != f->event) &&
           !(f->modes & 1u << c->mode) && (!f->wanted || f->wanted(f->arg, c));
}

// --- rows -------------------------------------------------------------------

// Hash table of rows by (image, address) or key, while the view is made.
struct gather {
    struct view *v;
    uint32_t room;
    uint32_t *buckets, *next;
};

static uint32_t hash(uint32_t a, uint32_t b, uint32_t room)
{
    uint32_t h = (a * 0x9e3779b9u ^ b) * 0x85ebca6bu;
    return (h ^ h >> 15) & (room - 1);
}

static uint32_t bucket_of(const struct gather *g, const struct view_row *r)
{
    return hash(r->image ^ r->key, r->address, g->room);
}

static int grow(struct gather *g)
{
    uint32_t room = g->room == 0 ? 256 : g->room * 2;
    void *rows = realloc(g->v->rows, room * sizeof(*g->v->rows));
    if (rows)
        g->v->rows = rows;
    void *buckets = realloc(g->buckets, room * sizeof(*g->buckets));
    if (buckets)
        g->buckets = buckets;
    void *next = realloc(g->next, room * sizeof(*g->next));
    if (next)
        g->next = next;
    if (!rows || !buckets || !next)
        return -1;
    g->room = room;
    for (uint32_t i = 0; i < room; i++)
        g->buckets[i] = NONE;
    for (uint32_t i = 0; i < g->v->count; i++) {
        uint32_t *bucket = &g->buckets[bucket_of(g, &g->v->rows[i])];
        g->next[i] = *bucket;
        *bucket = i;
    }
    return 0;
}

static uint32_t find_row(struct gather *g, const struct view_row *row)
{
    struct view *v = g->v;
    uint32_t i = g->buckets[bucket_of(g, row)];
    for (; i != NONE; i = g->next[i]) {
        const struct view_row *r = &v->rows[i];
        if (r->image == row->image && r->address == row->address &&
            r->key == row->key)
            return i;
    }
    if (v->count == g->room && grow(g) < 0)
        return NONE;
    i = v->count++;
    v->rows[i] = *row;
    uint32_t *bucket = &g->buckets[bucket_of(g, row)];
    g->next[i] = *bucket;
    *bucket = i;
    return i;
}

static struct view_row row_of_place(struct samples *s, struct place p,
                                    enum view_by by)
{
    struct view_row row = { .image = p.image, .address = p.address };
    const struct symbol *symbol = images_symbol(&s->images, p.image, p.address);
    // In an image with symbols, all addresses without one share a row.
    if (!symbol && by == BY_SYMBOL &&
        !images_load(&s->images, p.image)->problem)
        row.address = 0;
    if (!symbol)
        return row;
    row.name = symbol->name;
    row.name_size = symbol->name_size;
    if (by == BY_SYMBOL)
        row.address = symbol->start;
    return row;
}

static uint32_t key_of(const struct sample_count *c, enum view_by by)
{
    return by == BY_CPU ? c->cpu : by == BY_TASK ? c->task : c->thread;
}

// Makes a row for every node of the chains except the root.
static int rows_of_nodes(struct gather *g, struct samples *s, enum view_by by)
{
    struct view *v = g->v;
    v->row_of = malloc(s->chains.count * sizeof(*v->row_of));
    if (!v->row_of)
        return -1;
    v->row_of[CHAIN_ROOT] = NONE;
    for (uint32_t i = 1; i < s->chains.count; i++) {
        struct view_row row = row_of_place(s, s->chains.nodes[i].place, by);
        v->row_of[i] = find_row(g, &row);
        if (v->row_of[i] == NONE)
            return -1;
    }
    return 0;
}

// Counts a sample once in each row on its chain, even if the chain has the row
// several times (recursion).
static void add_totals(struct view *v, const struct samples *s,
                       const struct sample_count *c, uint32_t *seen,
                       uint32_t stamp)
{
    for (uint32_t n = c->chain; n != CHAIN_ROOT;
         n = s->chains.nodes[n].parent) {
        uint32_t row = v->row_of[n];
        if (seen[row] == stamp)
            continue;
        seen[row] = stamp;
        v->rows[row].total += c->samples;
        v->rows[row].total_period += c->period;
    }
}

static int add_counts(struct gather *g, struct samples *s, enum view_by by,
                      const struct view_filter *filter)
{
    struct view *v = g->v;
    bool places = by == BY_SYMBOL || by == BY_ADDRESS;
    uint32_t *seen = calloc(v->count + 1, sizeof(*seen));
    if (!seen)
        return -1;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct sample_count *c = &s->counts[i];
        struct view_row key = { .image = IMAGE_NONE, .key = key_of(c, by) };
        if (!view_passes(c, filter))
            continue;
        uint32_t row = places ? v->row_of[c->chain] : find_row(g, &key);
        if (row == NONE && !places) {
            free(seen);
            return -1;
        }
        v->samples += c->samples;
        v->period += c->period;
        v->squares += c->squares;
        v->modes[c->mode] += c->samples;
        v->mode_periods[c->mode] += c->period;
        if (c->irqs_off)
            v->irqs_off += c->samples;
        if (row == NONE) { // counted at the root: samples.chains.cut
            v->unknown += c->samples;
            continue;
        }
        v->rows[row].self += c->samples;
        v->rows[row].self_period += c->period;
        if (places && !v->rows[row].name)
            v->unknown += c->samples;
        if (places) {
            add_totals(v, s, c, seen, i + 1);
        } else {
            v->rows[row].total += c->samples;
            v->rows[row].total_period += c->period;
        }
    }
    free(seen);
    return 0;
}

static int compare_rows(const struct view_row *a, const struct view_row *b)
{
    if (a->self_period != b->self_period)
        return a->self_period < b->self_period ? 1 : -1;
    if (a->self != b->self)
        return a->self < b->self ? 1 : -1;
    if (a->total != b->total)
        return a->total < b->total ? 1 : -1;
    if (a->image != b->image)
        return a->image < b->image ? -1 : 1;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

struct order {
    struct view_row row;
    uint32_t was;
};

static int compare_order(const void *a, const void *b)
{
    return compare_rows(&((const struct order *)a)->row,
                        &((const struct order *)b)->row);
}

// Sorts the rows and updates row_of, so that nodes keep their rows.
static int sort_rows(struct view *v, uint32_t nodes)
{
    struct order *order = malloc((v->count + 1) * sizeof(*order));
    uint32_t *now = malloc((v->count + 1) * sizeof(*now));
    bool ok = order != NULL && now != NULL;
    for (uint32_t i = 0; ok && i < v->count; i++)
        order[i] = (struct order){ v->rows[i], i };
    if (ok)
        qsort(order, v->count, sizeof(*order), compare_order);
    for (uint32_t i = 0; ok && i < v->count; i++) {
        v->rows[i] = order[i].row;
        now[order[i].was] = i;
    }
    for (uint32_t i = 0; ok && v->row_of && i < nodes; i++) {
        if (v->row_of[i] != NONE)
            v->row_of[i] = now[v->row_of[i]];
    }
    free(order);
    free(now);
    return ok ? 0 : -1;
}

int view_make(struct view *v, struct samples *s, enum view_by by,
              const struct view_filter *filter)
{
    struct gather g = { .v = v };
    bool places = by == BY_SYMBOL || by == BY_ADDRESS;
    *v = (struct view){ 0 };
    int err = grow(&g);
    if (err == 0 && places)
        err = rows_of_nodes(&g, s, by);
    if (err == 0)
        err = add_counts(&g, s, by, filter);
    if (err == 0)
        err = sort_rows(v, s->chains.count);
    free(g.buckets);
    free(g.next);
    if (err < 0)
        view_free(v);
    return err;
}

void view_free(struct view *v)
{
    free(v->rows);
    free(v->row_of);
    *v = (struct view){ 0 };
}
