#include "html_diff.h"

#include "strobe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEFT_OUT 0.0001 // share of the total: below a pixel's width

// --- runs -------------------------------------------------------------------

static void write_run(FILE *out, const struct diff_run *r)
{
    char *line = NULL;
    size_t size;
    FILE *memory = open_memstream(&line, &size);

    if (!memory)
        fail(1, "not enough memory for the page");
    diff_print_run(memory, r);
    fclose(memory);
    json_string(out, line, strcspn(line, "\n"));
    free(line);
}

static void write_side(FILE *out, const struct diff *d, uint32_t first,
                       uint32_t count)
{
    const char *command = d->run[first].command;

    fputs("{\"command\":", out);
    json_string(out, command, strlen(command));
    fputs(",\"runs\":[", out);
    for (uint32_t i = first; i < first + count; i++) {
        fputs(i > first ? "," : "", out);
        write_run(out, &d->run[i]);
    }
    fputs("]}", out);
}

// --- trees ------------------------------------------------------------------

static void write_symbols(FILE *out, const struct diff_trees *t)
{
    fputs(",\"symbols\":{\"name\":[", out);
    for (uint32_t i = 0; i < t->symbol_count; i++) {
        fputs(i > 0 ? "," : "", out);
        json_string(out, t->symbols[i]->name, strlen(t->symbols[i]->name));
    }
    fputs("],\"path\":[", out);
    for (uint32_t i = 0; i < t->symbol_count; i++) {
        fputs(i > 0 ? "," : "", out);
        json_string(out, t->symbols[i]->path, strlen(t->symbols[i]->path));
    }
    fputs("]}", out);
}

struct compared {
    double before, after, chance;
};

static struct compared compare(const struct diff *d, const double *values)
{
    struct sample_of before = sample_of(values, d->count[DIFF_BEFORE]);
    struct sample_of after =
        sample_of(values + d->count[DIFF_BEFORE], d->count[DIFF_AFTER]);

    return (struct compared){ before.mean, after.mean,
                              welch_test(&before, &after).p };
}

// Writes a member of each shown node as a list.
static void write_list(FILE *out, const char *name, const struct compared *list,
                       const uint32_t *nodes, uint32_t count, size_t member)
{
    fprintf(out, ",\"%s\":[", name);
    for (uint32_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, (const char *)&list[nodes[i]] + member, sizeof(value));
        fputs(i > 0 ? "," : "", out);
        if (isnan(value))
            fputs("null", out);
        else
            fprintf(out, "%.9g", value);
    }
    fputc(']', out);
}

// The parent of a shown node is shown, too: its value is not smaller.
static void write_tree(FILE *out, const char *name, const struct diff *d,
                       const struct diff_tree *t)
{
    uint32_t all = t->paths.count, count = 0;
    struct compared *list = calloc(all, sizeof(*list));
    uint32_t *nodes = calloc(all, sizeof(*nodes)); // those shown
    uint32_t *numbers = calloc(all, sizeof(*numbers));

    if (!list || !nodes || !numbers)
        fail(1, "not enough memory for the page");
    for (uint32_t i = 0; i < all; i++) {
        list[i] = compare(d, t->values + (size_t)i * d->runs);
        if (i != CHAIN_ROOT && list[i].before < LEFT_OUT * list[0].before &&
            list[i].after < LEFT_OUT * list[0].after)
            continue;
        numbers[i] = count;
        nodes[count++] = i;
    }
    fprintf(out, ",\"%s\":{\"parent\":[", name);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s%u", i > 0 ? "," : "",
                numbers[t->paths.nodes[nodes[i]].parent]);
    fputs("],\"symbol\":[0", out);
    for (uint32_t i = 1; i < count; i++)
        fprintf(out, ",%u", t->paths.nodes[nodes[i]].place.address);
    fputc(']', out);
    write_list(out, "before", list, nodes, count,
               offsetof(struct compared, before));
    write_list(out, "after", list, nodes, count,
               offsetof(struct compared, after));
    write_list(out, "chance", list, nodes, count,
               offsetof(struct compared, chance));
    fputc('}', out);
    free(list);
    free(nodes);
    free(numbers);
}

void html_diff(FILE *out, struct diff *d, const struct diff_trees *t)
{
    uint32_t before = d->count[DIFF_BEFORE];
    const char *unit = diff_unit_name(d);

    fputs("{\"unit\":", out);
    json_string(out, unit, strlen(unit));
    fputs(",\"sides\":[", out);
    write_side(out, d, 0, before);
    fputc(',', out);
    write_side(out, d, before, d->count[DIFF_AFTER]);
    fprintf(out, "],\"left_out\":%g", LEFT_OUT);
    write_symbols(out, t);
    write_tree(out, "calls", d, &t->calls);
    write_tree(out, "inverted", d, &t->inverted);
    fputs(",\"table\":", out);
    diff_json(out, d);
    fputc('}', out);
}
