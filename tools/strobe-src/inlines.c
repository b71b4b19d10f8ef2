#include "inlines.h"

#include "lines.h"
#include "places.h"

#include <stdlib.h>
#include <string.h>

#define MARK " (inlined)"
#define CHAIN_NODES_MAX (1u << 28)

// An inlined function, numbered in the order of finding.
struct found {
    struct inlined inlined;
    uint32_t number;
};

struct expansion {
    struct profile *profile;
    struct inlines *out;
    struct places places;
    struct found *found;
    uint32_t count, room;
    uint32_t *first;  // first found of each place, which is the innermost
    uint32_t *listed; // index of each found in `out->list`
    uint32_t *image;  // image of the inlined functions of each real image
};

// --- finding ----------------------------------------------------------------

static void add(struct expansion *x, const struct inlined *inlined)
{
    if (x->count == x->room) {
        x->room = x->room * 2 + 1024;
        x->found = enough(realloc(x->found, x->room * sizeof(*x->found)));
    }
    x->found[x->count] = (struct found){ *inlined, x->count };
    x->count++;
}

static void find_all(struct expansion *x, struct lines *l)
{
    lines_ask(l, x->places.list, x->places.count);
    x->first = enough(calloc(x->places.count + 1, sizeof(*x->first)));
    for (uint32_t i = 0; i < x->places.count; i++) {
        uint32_t frames;
        const struct line_frame *f =
            lines_frames(l, x->places.list[i], &frames);
        x->first[i] = x->count;
        for (uint32_t n = 0; n + 1 < frames; n++)
            add(x, &(struct inlined){
                       .place = x->places.list[i],
                       .depth = frames - 1 - n,
                       .name = f[n].function != NULL ? f[n].function : "?" });
    }
    x->first[x->places.count] = x->count;
}

// Sorts by symbol, so that all places of a symbol are adjacent.
static int compare(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    if (x->inlined.place.image != y->inlined.place.image)
        return x->inlined.place.image < y->inlined.place.image ? -1 : 1;
    int names = strcmp(x->inlined.name, y->inlined.name);
    if (names != 0)
        return names;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void list_all(struct expansion *x)
{
    struct inlines *out = x->out;

    if (x->count > 0)
        qsort(x->found, x->count, sizeof(*x->found), compare);
    out->list = enough(calloc(x->count + 1, sizeof(*out->list)));
    out->count = x->count;
    x->listed = enough(calloc(x->count + 1, sizeof(*x->listed)));
    for (uint32_t i = 0; i < x->count; i++) {
        out->list[i] = x->found[i].inlined;
        x->listed[x->found[i].number] = i;
    }
}

// --- images and symbols -----------------------------------------------------

static struct symbol make_symbol(struct inlines *out, uint32_t from,
                                 uint32_t to)
{
    size_t room = strlen(out->list[from].name) + sizeof(MARK);
    char *text = enough(malloc(room));

    snprintf(text, room, "%s" MARK, out->list[from].name);
    out->texts[out->text_count++] = text;
    return (struct symbol){ .start = from + 1,
                            .end = to + 1,
                            .name = text,
                            .name_size = (uint32_t)room - 1,
                            .enclosing = SYMBOL_NONE };
}

static bool same_symbol(const struct inlined *a, const struct inlined *b)
{
    return a->place.image == b->place.image && strcmp(a->name, b->name) == 0;
}

// Adds an image for [from, to) of the list, which are all of one real image.
static void make_image(struct expansion *x, uint32_t from, uint32_t to)
{
    struct inlines *out = x->out;
    struct images *images = &x->profile->samples.images;
    uint32_t real = out->list[from].place.image;
    struct symbol *table = enough(calloc(to - from, sizeof(*table)));
    char name[sizeof("[inlined 4294967295]")];
    uint32_t count = 0;

    for (uint32_t begin = from, end; begin < to; begin = end) {
        for (end = begin + 1; end < to; end++) {
            if (!same_symbol(&out->list[begin], &out->list[end]))
                break;
        }
        table[count++] = make_symbol(out, begin, end);
    }
    snprintf(name, sizeof(name), "[inlined %u]", real);
    uint32_t image = images_add(images, name, NULL, 0);
    if (image < out->first_image)
        fail(1, "not enough memory for the inlined functions");
    struct image *m = &images->list[image], *of = &images->list[real];
    free(m->path);
    m->path = enough(strdup(of->path));
    memcpy(m->build_id, of->build_id, sizeof(m->build_id));
    m->build_id_size = of->build_id_size;
    m->loaded = true;
    m->symbol_table = table;
    m->symbols = (struct symbols){ table, count };
    x->image[real] = image;
    out->real[image - out->first_image] = real;
}

static void make_images(struct expansion *x)
{
    struct inlines *out = x->out;

    out->first_image = x->profile->samples.images.count;
    out->real = enough(calloc(out->first_image, sizeof(*out->real)));
    out->texts = enough(calloc(out->count + 1, sizeof(*out->texts)));
    x->image = enough(calloc(out->first_image, sizeof(*x->image)));
    for (uint32_t from = 0, to; from < out->count; from = to) {
        for (to = from + 1; to < out->count; to++) {
            if (out->list[to].place.image != out->list[from].place.image)
                break;
        }
        make_image(x, from, to);
    }
}

// --- chains -----------------------------------------------------------------

static uint32_t add_frame(struct chains *c, uint32_t parent, struct place place)
{
    uint64_t cut = c->cut;
    uint32_t node = chains_add(c, parent, place);

    if (c->cut != cut)
        fail(1, "not enough memory for the inlined functions");
    return node;
}

// The nodes that replace a recorded node.
struct stands_for {
    uint32_t code, innermost; // without inlined functions; with them
};

// Adds the place, then the functions inlined there, the outermost first.
static struct stands_for add_frames(const struct expansion *x, struct chains *c,
                                    uint32_t parent, uint32_t old)
{
    uint32_t place = places_number(&x->places, old) - 1;
    uint32_t code = add_frame(c, parent, x->places.list[place]), node = code;

    for (uint32_t n = x->first[place + 1]; n-- > x->first[place];) {
        uint32_t at = x->listed[n];
        struct place shown = { x->image[x->out->list[at].place.image], at + 1 };
        node = add_frame(c, node, shown);
    }
    return (struct stands_for){ code, node };
}

// An idle CPU is interrupted at the instruction after its halt, which usually
// belongs to an inlined function that has not begun. So the sample counts for
// the containing function.
static void replace(uint32_t *chain, uint8_t mode, const struct stands_for *now)
{
    *chain = mode == MODE_IDLE ? now[*chain].code : now[*chain].innermost;
}

// Makes the new chains. A node's parent precedes it in the list.
static void make_chains(const struct expansion *x)
{
    struct samples *s = &x->profile->samples;
    struct stands_for *now = enough(calloc(s->chains.count, sizeof(*now)));
    struct chains made;

    if (chains_init(&made, CHAIN_NODES_MAX) < 0)
        fail(1, "not enough memory for the inlined functions");
    for (uint32_t n = 1; n < s->chains.count; n++)
        now[n] =
            add_frames(x, &made, now[s->chains.nodes[n].parent].innermost, n);
    made.cut = s->chains.cut;
    for (uint32_t i = 0; i < s->count; i++)
        replace(&s->counts[i].chain, s->counts[i].mode, now);
    for (size_t i = 0; i < x->profile->count; i++)
        replace(&x->profile->list[i].chain, x->profile->list[i].mode, now);
    chains_free(&s->chains);
    s->chains = made;
    free(now);
}

// --- expanding --------------------------------------------------------------

void inlines_expand(struct profile *p, struct lines *l)
{
    struct expansion x = { .profile = p, .out = &p->inlines };

    places_init(&x.places, p);
    find_all(&x, l);
    p->inlines = (struct inlines){ .expanded = true };
    list_all(&x);
    make_images(&x);
    make_chains(&x);
    places_free(&x.places);
    free(x.found);
    free(x.first);
    free(x.listed);
    free(x.image);
}

void inlines_free(struct inlines *i)
{
    for (uint32_t n = 0; n < i->text_count; n++)
        free(i->texts[n]);
    free(i->texts);
    free(i->real);
    free(i->list);
    *i = (struct inlines){ 0 };
}

const struct inlined *inlines_find(const struct inlines *i, struct place place)
{
    bool inlined = i->expanded && place.image >= i->first_image &&
                   place.image != IMAGE_NONE;

    return inlined ? &i->list[place.address - 1] : NULL;
}

uint32_t inlines_image(const struct inlines *i, uint32_t image)
{
    bool inlined =
        i->expanded && image >= i->first_image && image != IMAGE_NONE;

    return inlined ? i->real[image - i->first_image] : image;
}
