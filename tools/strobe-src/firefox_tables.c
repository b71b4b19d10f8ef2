#include "firefox_tables.h"

#include <stdlib.h>
#include <string.h>

uint32_t firefox_string(struct firefox_tables *t, const char *text)
{
    char *copy = printable(enough(strdup(text)));
    uint32_t number = names_add(&t->strings, copy);

    free(copy);
    return number;
}

// --- chains -----------------------------------------------------------------

static const struct chain_node *node_at(const struct firefox_tables *t,
                                        uint32_t node)
{
    return &t->e->profile->samples.chains.nodes[node];
}

static const struct view_row *row_at(const struct firefox_tables *t,
                                     uint32_t row)
{
    return &t->e->view->rows[row];
}

static uint32_t real_image(const struct firefox_tables *t, uint32_t image)
{
    return inlines_image(&t->e->profile->inlines, image);
}

const struct inlined *firefox_inlined(const struct firefox_tables *t,
                                      uint32_t node)
{
    return inlines_find(&t->e->profile->inlines, node_at(t, node)->place);
}

// Inlined functions are nodes below the function that contains the code.
uint32_t firefox_code_row(const struct firefox_tables *t, uint32_t node)
{
    while (firefox_inlined(t, node))
        node = node_at(t, node)->parent;
    return t->e->view->row_of[node];
}

static void add_resource(struct firefox_tables *t, uint32_t image)
{
    if (!firefox_has_file(image))
        return;
    numbering_add(&t->resources, image);
    numbering_add(&t->libs, image);
}

static uint32_t frame_key(const struct firefox_tables *t, uint32_t node)
{
    return node == CHAIN_ROOT ? t->places.count
                              : places_number(&t->places, node) - 1;
}

int64_t firefox_frame(const struct firefox_tables *t, uint32_t node)
{
    return numbering_of(&t->frames, frame_key(t, node));
}

static void add_frame(struct firefox_tables *t, uint32_t node)
{
    if (!numbering_add(&t->frames, frame_key(t, node)))
        return;
    t->frame_node[t->frames.count - 1] = node;
    if (node == CHAIN_ROOT) {
        numbering_add(&t->functions, t->function_count);
        return;
    }
    uint32_t row = t->e->view->row_of[node], code = firefox_code_row(t, node);
    numbering_add(&t->functions, t->function_of[row]);
    add_resource(t, real_image(t, row_at(t, row)->image));
    if (row_at(t, code)->name && firefox_has_file(row_at(t, code)->image))
        numbering_add(&t->symbols, code);
}

// Adds the callers first. The root is a frame in an idle track only.
static void add_stack(struct firefox_tables *t, uint32_t node)
{
    if ((node == CHAIN_ROOT && !t->idle) || t->stacks.of[node] != 0)
        return;
    if (node != CHAIN_ROOT)
        add_stack(t, node_at(t, node)->parent); // depth: chain length
    numbering_add(&t->stacks, node);
    add_frame(t, node);
}

int64_t firefox_stack(struct firefox_tables *t, uint32_t chain)
{
    add_stack(t, chain);
    return numbering_of(&t->stacks, chain);
}

void firefox_name(const struct firefox_tables *t, uint32_t row,
                  char name[FIREFOX_NAME])
{
    const struct view_row *r = row_at(t, row);
    const struct inlined *inlined = inlines_find(
        &t->e->profile->inlines, (struct place){ r->image, r->address });

    if (inlined)
        snprintf(name, FIREFOX_NAME, "%s", inlined->name);
    else
        frame_name(name, FIREFOX_NAME, t->e, row);
}

// --- init and free ----------------------------------------------------------

// A function is identified by name and image, whether inlined or not.
static void number_functions(struct firefox_tables *t)
{
    uint32_t rows = t->e->view->count;
    struct names names = { 0 };
    char name[FIREFOX_NAME], key[FIREFOX_NAME + sizeof("4294967295 ")];

    t->function_of = enough(calloc(rows + 1, sizeof(*t->function_of)));
    t->function_row = enough(calloc(rows + 1, sizeof(*t->function_row)));
    for (uint32_t row = 0; row < rows; row++) {
        firefox_name(t, row, name);
        snprintf(key, sizeof(key), "%u %s",
                 real_image(t, row_at(t, row)->image), name);
        uint32_t number = names_add(&names, key);
        t->function_of[row] = number;
        if (number == t->function_count)
            t->function_row[t->function_count++] = row;
    }
    names_free(&names);
}

void firefox_tables_init(struct firefox_tables *t, struct export *e)
{
    uint32_t images = e->profile->samples.images.count;

    *t = (struct firefox_tables){ .e = e, .lines = profile_lines(e->profile) };
    places_init(&t->places, e->profile);
    lines_ask(t->lines, t->places.list, t->places.count);
    number_functions(t);
    numbering_init(&t->libs, images);
    numbering_init(&t->stacks, e->profile->samples.chains.count);
    numbering_init(&t->frames, t->places.count + 1);
    numbering_init(&t->functions, t->function_count + 1);
    numbering_init(&t->symbols, e->view->count);
    numbering_init(&t->resources, images);
    t->frame_node = enough(calloc(t->places.count + 1, sizeof(*t->frame_node)));
}

void firefox_tables_begin(struct firefox_tables *t, bool idle)
{
    t->idle = idle;
    numbering_clear(&t->stacks);
    numbering_clear(&t->frames);
    numbering_clear(&t->functions);
    numbering_clear(&t->symbols);
    numbering_clear(&t->resources);
}

void firefox_tables_free(struct firefox_tables *t)
{
    places_free(&t->places);
    names_free(&t->strings);
    numbering_free(&t->libs);
    numbering_free(&t->stacks);
    numbering_free(&t->frames);
    numbering_free(&t->functions);
    numbering_free(&t->symbols);
    numbering_free(&t->resources);
    free(t->function_of);
    free(t->function_row);
    free(t->frame_node);
}
