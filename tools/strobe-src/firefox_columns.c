// The columns of a thread's tables (firefox_tables.h).
#include "firefox_tables.h"

#include <inttypes.h>

#define NONE UINT32_MAX
#define RESOURCE_LIBRARY "1"

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

static void put_value(FILE *out, int64_t value)
{
    if (value == FIREFOX_NULL)
        fputs("null", out);
    else
        fprintf(out, "%" PRId64, value);
}

void firefox_column(struct firefox_tables *t, FILE *out, const char *name,
                    uint32_t count,
                    int64_t (*value)(struct firefox_tables *t, uint32_t i))
{
    fprintf(out, "\"%s\":[", name);
    for (uint32_t i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "", out);
        put_value(out, value(t, i));
    }
    fputs("],", out);
}

void firefox_same(FILE *out, const char *name, uint32_t count,
                  const char *value)
{
    fprintf(out, "\"%s\":[", name);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", value);
    fputs("],", out);
}

static int64_t or_null(int64_t number)
{
    return number == -1 ? FIREFOX_NULL : number;
}

// --- stacks and frames ------------------------------------------------------

static int64_t stack_frame(struct firefox_tables *t, uint32_t i)
{
    return firefox_frame(t, t->stacks.keys[i]);
}

static int64_t stack_prefix(struct firefox_tables *t, uint32_t i)
{
    uint32_t node = t->stacks.keys[i];

    if (node == CHAIN_ROOT)
        return FIREFOX_NULL;
    return or_null(numbering_of(&t->stacks, node_at(t, node)->parent));
}

static int64_t frame_address(struct firefox_tables *t, uint32_t i)
{
    uint32_t node = t->frame_node[i];
    const struct inlined *inlined =
        node != CHAIN_ROOT ? firefox_inlined(t, node) : NULL;
    struct place place =
        inlined != NULL ? inlined->place : node_at(t, node)->place;

    return node != CHAIN_ROOT && firefox_has_file(place.image)
               ? (int64_t)place.address
               : -1;
}

static int64_t frame_depth(struct firefox_tables *t, uint32_t i)
{
    uint32_t node = t->frame_node[i];
    const struct inlined *inlined =
        node != CHAIN_ROOT ? firefox_inlined(t, node) : NULL;

    return inlined != NULL ? inlined->depth : 0;
}

static int64_t frame_category(struct firefox_tables *t, uint32_t i)
{
    uint32_t image = real_image(t, node_at(t, t->frame_node[i])->place.image);

    if (t->idle)
        return CATEGORY_IDLE;
    if (image == IMAGE_CUT)
        return CATEGORY_OTHER;
    return image == IMAGE_KERNEL ? CATEGORY_KERNEL : CATEGORY_USER;
}

static int64_t frame_function(struct firefox_tables *t, uint32_t i)
{
    uint32_t node = t->frame_node[i];

    return numbering_of(&t->functions,
                        node == CHAIN_ROOT
                            ? t->function_count
                            : t->function_of[t->e->view->row_of[node]]);
}

static int64_t frame_symbol(struct firefox_tables *t, uint32_t i)
{
    uint32_t node = t->frame_node[i];

    if (node == CHAIN_ROOT)
        return FIREFOX_NULL;
    return or_null(numbering_of(&t->symbols, firefox_code_row(t, node)));
}

static int64_t frame_line(struct firefox_tables *t, uint32_t i)
{
    uint32_t node = t->frame_node[i];
    uint32_t line = node != CHAIN_ROOT
                        ? lines_find(t->lines, node_at(t, node)->place).line
                        : 0;

    return line > 0 ? line : FIREFOX_NULL;
}

static void put_stacks(struct firefox_tables *t, FILE *out)
{
    fputs(",\n\"stackTable\":{", out);
    firefox_column(t, out, "frame", t->stacks.count, stack_frame);
    firefox_column(t, out, "prefix", t->stacks.count, stack_prefix);
    fprintf(out, "\"length\":%u}", t->stacks.count);
}

static void put_frames(struct firefox_tables *t, FILE *out)
{
    uint32_t count = t->frames.count;

    fputs(",\n\"frameTable\":{", out);
    firefox_column(t, out, "address", count, frame_address);
    firefox_column(t, out, "inlineDepth", count, frame_depth);
    firefox_column(t, out, "category", count, frame_category);
    firefox_same(out, "subcategory", count, "0");
    firefox_column(t, out, "func", count, frame_function);
    firefox_column(t, out, "nativeSymbol", count, frame_symbol);
    firefox_same(out, "innerWindowID", count, "0");
    firefox_column(t, out, "line", count, frame_line);
    firefox_same(out, "column", count, "null");
    fprintf(out, "\"length\":%u}", count);
}

// --- functions, symbols, resources ------------------------------------------

// Returns NONE for idle.
static uint32_t function_row(const struct firefox_tables *t, uint32_t i)
{
    uint32_t function = t->functions.keys[i];

    return function < t->function_count ? t->function_row[function] : NONE;
}

static int64_t function_name(struct firefox_tables *t, uint32_t i)
{
    uint32_t row = function_row(t, i);
    char name[FIREFOX_NAME];

    if (row == NONE)
        return firefox_string(t, IDLE_FRAME);
    firefox_name(t, row, name);
    return firefox_string(t, name);
}

static int64_t function_resource(struct firefox_tables *t, uint32_t i)
{
    uint32_t row = function_row(t, i);
    uint32_t image =
        row != NONE ? real_image(t, row_at(t, row)->image) : IMAGE_UNKNOWN;

    return firefox_has_file(image) ? numbering_of(&t->resources, image) : -1;
}

static int64_t function_file(struct firefox_tables *t, uint32_t i)
{
    uint32_t row = function_row(t, i);

    if (row == NONE)
        return FIREFOX_NULL;
    const struct view_row *r = row_at(t, row);
    struct line line =
        lines_find(t->lines, (struct place){ r->image, r->address });
    return line.file != NULL ? firefox_string(t, line.file) : FIREFOX_NULL;
}

static void put_functions(struct firefox_tables *t, FILE *out)
{
    uint32_t count = t->functions.count;

    fputs(",\n\"funcTable\":{", out);
    firefox_column(t, out, "name", count, function_name);
    firefox_same(out, "isJS", count, "false");
    firefox_same(out, "relevantForJS", count, "false");
    firefox_column(t, out, "resource", count, function_resource);
    firefox_column(t, out, "fileName", count, function_file);
    firefox_same(out, "lineNumber", count, "null");
    firefox_same(out, "columnNumber", count, "null");
    fprintf(out, "\"length\":%u}", count);
}

static int64_t symbol_lib(struct firefox_tables *t, uint32_t i)
{
    return numbering_of(&t->libs, row_at(t, t->symbols.keys[i])->image);
}

static int64_t symbol_address(struct firefox_tables *t, uint32_t i)
{
    return row_at(t, t->symbols.keys[i])->address;
}

static int64_t symbol_name(struct firefox_tables *t, uint32_t i)
{
    char name[FIREFOX_NAME];

    frame_name(name, sizeof(name), t->e, t->symbols.keys[i]);
    return firefox_string(t, name);
}

static int64_t symbol_size(struct firefox_tables *t, uint32_t i)
{
    const struct view_row *r = row_at(t, t->symbols.keys[i]);
    const struct symbol *s =
        images_symbol(&t->e->profile->samples.images, r->image, r->address);

    return s != NULL ? s->end - s->start : FIREFOX_NULL;
}

static void put_symbols(struct firefox_tables *t, FILE *out)
{
    uint32_t count = t->symbols.count;

    fputs(",\n\"nativeSymbols\":{", out);
    firefox_column(t, out, "libIndex", count, symbol_lib);
    firefox_column(t, out, "address", count, symbol_address);
    firefox_column(t, out, "name", count, symbol_name);
    firefox_column(t, out, "functionSize", count, symbol_size);
    fprintf(out, "\"length\":%u}", count);
}

static int64_t resource_lib(struct firefox_tables *t, uint32_t i)
{
    return numbering_of(&t->libs, t->resources.keys[i]);
}

static int64_t resource_name(struct firefox_tables *t, uint32_t i)
{
    return firefox_string(
        t, t->e->profile->samples.images.list[t->resources.keys[i]].path);
}

static void put_resources(struct firefox_tables *t, FILE *out)
{
    uint32_t count = t->resources.count;

    fputs(",\n\"resourceTable\":{", out);
    firefox_column(t, out, "lib", count, resource_lib);
    firefox_column(t, out, "name", count, resource_name);
    firefox_same(out, "host", count, "null");
    firefox_same(out, "type", count, RESOURCE_LIBRARY);
    fprintf(out, "\"length\":%u}", count);
}

void firefox_tables_write(struct firefox_tables *t, FILE *out)
{
    put_stacks(t, out);
    put_frames(t, out);
    put_functions(t, out);
    put_symbols(t, out);
    put_resources(t, out);
}
