// gmon.out for gprof (GNU's layout: glibc, gmon/sys/gmon_out.h): a histogram of
// addresses, and arcs from caller to callee.
//
// Samples do not count calls. So the count of an arc is the time of the samples
// with it in their chain, in the unit of the histogram. gprof divides a
// function's time among its callers in proportion to these counts: the times in
// its call graph are right.
#include "export.h"
#include "gprof_names.h"

#include "user/libprofile/gmon_file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define BIN_BYTES 2u           // gprof's own unit
#define RANGE_MAX (256u << 20) // bytes of code; more is an error
#define NS_PER_SECOND 1000000000u
// Of a bin and of an arc; a damaged file may have more.
#define UNITS_MAX (256u * UINT16_MAX)
#define ARC_UNITS_MAX (256ull * UINT32_MAX)

struct arc {
    uint32_t from, self; // address of the call, start of the callee
    uint64_t period;
    uint32_t seen; // index of the last entry counted, plus 1
};

struct gmon {
    struct export *e;
    uint32_t image, low, high;
    uint64_t *bins; // periods; then in units
    uint32_t bin_count;
    uint64_t unit;    // ns or events
    uint32_t rate;    // units in a second; 0: the unit is a sample
    struct arc *arcs; // sorted by from, self
    uint32_t arc_count;
};

// --- histogram --------------------------------------------------------------

static struct place innermost(const struct gmon *g,
                              const struct sample_count *c)
{
    return g->e->profile->samples.chains.nodes[c->chain].place;
}

static bool wanted(const struct gmon *g, const struct sample_count *c)
{
    return view_passes(c, g->e->filter) && c->chain != CHAIN_ROOT;
}

static void widen(struct gmon *g, uint32_t start, uint32_t end)
{
    g->low = start < g->low ? start : g->low;
    g->high = end > g->high ? end : g->high;
}

// Finds the range from the first function with samples to the end of the last
// one. The range of all symbols may be too large in a kernel.
static void find_range(struct gmon *g)
{
    struct images *images = &g->e->profile->samples.images;
    const struct samples *s = &g->e->profile->samples;
    const struct image *m = images_load(images, g->image);

    if (m->problem || m->symbols.count == 0)
        fail(1, "%s: %s: gprof needs the program's file", m->path,
             m->problem != NULL ? m->problem : "no symbols");
    g->low = UINT32_MAX;
    for (uint32_t i = 0; i < s->count; i++) {
        struct place p = innermost(g, &s->counts[i]);
        const struct symbol *symbol =
            p.image == g->image ? symbols_find(&m->symbols, p.address) : NULL;
        if (wanted(g, &s->counts[i]) && symbol)
            widen(g, symbol->start, symbol->end);
    }
    if (g->high == 0) // gprof requires a histogram
        widen(g, m->symbols.table[0].start, m->symbols.table[0].end);
    if (g->high - g->low > RANGE_MAX)
        fail(1, "%s: samples from 0x%x to 0x%x: range too large for gprof",
             m->path, g->low, g->high);
    g->low = g->low / BIN_BYTES * BIN_BYTES;
    g->bin_count = (g->high - g->low + BIN_BYTES - 1) / BIN_BYTES;
    g->high = g->low + g->bin_count * BIN_BYTES;
    g->bins = enough(calloc(g->bin_count + 1, sizeof(*g->bins)));
}

static void fill_bins(struct gmon *g)
{
    const struct samples *s = &g->e->profile->samples;

    for (uint32_t i = 0; i < s->count; i++) {
        if (!wanted(g, &s->counts[i]))
            continue;
        struct place p = innermost(g, &s->counts[i]);
        if (p.image == g->image && p.address >= g->low && p.address < g->high)
            g->bins[(p.address - g->low) / BIN_BYTES] += s->counts[i].period;
    }
}

// Of time: the finest decimal fraction of a second in which each bin fits into
// its 16 bits. Of events: the mean period of a sample.
static void choose_unit(struct gmon *g)
{
    const struct samples *s = &g->e->profile->samples;
    uint64_t most = 0;

    for (uint32_t i = 0; i < g->bin_count; i++)
        most = g->bins[i] > most ? g->bins[i] : most;
    g->rate = frame_is_timed(g->e, 0) ? NS_PER_SECOND : 0;
    while (g->rate > 1 && most / (NS_PER_SECOND / g->rate) > UINT16_MAX)
        g->rate /= 10;
    if (g->rate > 0)
        g->unit = NS_PER_SECOND / g->rate;
    else
        g->unit = s->period > s->total ? s->period / s->total : 1;
}

// Converts the periods of the bins to units. The rounding error is carried over
// to the next bin, so that the sum of a function is off by one unit at most.
static void round_bins(struct gmon *g)
{
    uint64_t sum = 0, done = 0;
    bool cut = false;

    for (uint32_t i = 0; i < g->bin_count; i++) {
        sum += g->bins[i];
        uint64_t units = (sum + g->unit / 2) / g->unit - done;
        done += units;
        cut |= units > UNITS_MAX;
        g->bins[i] = units > UNITS_MAX ? UNITS_MAX : units;
    }
    if (cut)
        complain("%s: samples of more time than gprof can hold are cut",
                 g->e->profile->path);
}

static struct gmon_histogram histogram_of(struct gmon *g)
{
    round_bins(g);
    return (struct gmon_histogram){
        .low = g->low,
        .bins = g->bin_count,
        .bin_bytes = BIN_BYTES,
        .counts = g->bins,
        .rate = g->rate,
    };
}

// --- arcs -------------------------------------------------------------------

static int compare_arcs(const void *a, const void *b)
{
    const struct arc *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->self < y->self ? -1 : x->self > y->self;
}

// Finds the arc into a node from its caller. Returns false if either is outside
// the program, or if the node has no symbol.
static bool arc_of(const struct gmon *g, uint32_t node, struct arc *out)
{
    const struct profile *p = g->e->profile;
    const struct chain_node *n = &p->samples.chains.nodes[node];
    const struct chain_node *caller = &p->samples.chains.nodes[n->parent];
    const struct view_row *row = &g->e->view->rows[g->e->view->row_of[node]];

    if (n->parent == CHAIN_ROOT || n->place.image != g->image ||
        caller->place.image != g->image || !row->name)
        return false;
    *out = (struct arc){ .from = caller->place.address, .self = row->address };
    return true;
}

static void list_arcs(struct gmon *g)
{
    uint32_t nodes = g->e->profile->samples.chains.count, count = 0, kept = 0;

    g->arcs = enough(calloc(nodes, sizeof(*g->arcs)));
    for (uint32_t n = 1; n < nodes; n++)
        count += arc_of(g, n, &g->arcs[count]);
    qsort(g->arcs, count, sizeof(*g->arcs), compare_arcs);
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || compare_arcs(&g->arcs[kept - 1], &g->arcs[i]) != 0)
            g->arcs[kept++] = g->arcs[i];
    }
    g->arc_count = kept;
}

// An arc counts once a chain, even if recursion repeats it.
static void count_arcs(struct gmon *g)
{
    const struct samples *s = &g->e->profile->samples;
    struct arc key;

    for (uint32_t i = 0; i < s->count; i++) {
        if (!wanted(g, &s->counts[i]))
            continue;
        for (uint32_t n = s->counts[i].chain; n != CHAIN_ROOT;
             n = s->chains.nodes[n].parent) {
            if (!arc_of(g, n, &key))
                continue;
            struct arc *arc = bsearch(&key, g->arcs, g->arc_count,
                                      sizeof(*g->arcs), compare_arcs);
            if (arc->seen != i + 1)
                arc->period += s->counts[i].period;
            arc->seen = i + 1;
        }
    }
}

static void put_arcs(const struct gmon *g)
{
    for (uint32_t i = 0; i < g->arc_count; i++) {
        uint64_t units = (g->arcs[i].period + g->unit - 1) / g->unit;
        gmon_put_arc(g->e->out, g->arcs[i].from, g->arcs[i].self,
                     units > ARC_UNITS_MAX ? ARC_UNITS_MAX : units);
    }
}

// --- the program's file for gprof -------------------------------------------

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *out = fopen(path, "w");

    if (!out)
        fail(1, "%s: %s", path, strerror(errno));
    bool bad = fwrite(bytes, 1, size, out) != size;
    if (fclose(out) != 0 || bad)
        fail(1, "%s: %s", path, strerror(errno));
}

// Prints the command that reads gmon.out with the program's file: gprof does
// not check that the file matches. If gprof would ignore some names, the file
// is a copy with changed names, OUT.elf.
static void tell_file(const struct gmon *g)
{
    const struct image *m = &g->e->profile->samples.images.list[g->image];
    const char *problem, *out = g->e->out_path;
    const char *path = elves_path(&g->e->profile->elves, m, &problem);
    size_t size = 0;
    uint8_t *elf = path != NULL ? file_read(path, &size) : NULL;
    char copy[PATH_MAX];

    if (!elf)
        return;
    uint32_t changed = gprof_names(elf, size);
    if (changed > 0 && !out) {
        complain("%s: gprof leaves out %u functions with a '.' in their names: "
                 "--output OUT also writes OUT.elf, with other names",
                 m->path, changed);
    } else if (changed > 0) {
        if (snprintf(copy, sizeof(copy), "%s.elf", out) >= (int)sizeof(copy))
            fail(1, "%s: the name is too long", out);
        write_file(copy, elf, size);
        path = copy;
    }
    complain("%s: read it with: gprof %s %s", m->path, path,
             out != NULL ? out : "OUT");
    free(elf);
}

void export_gmon(struct export *e)
{
    struct gmon g = { .e = e, .image = export_image(e) };

    find_range(&g);
    fill_bins(&g);
    choose_unit(&g);
    list_arcs(&g);
    count_arcs(&g);
    struct gmon_histogram h = histogram_of(&g);
    gmon_put_head(e->out);
    gmon_put_histogram(e->out, &h);
    put_arcs(&g);
    tell_file(&g);
    free(g.bins);
    free(g.arcs);
}
