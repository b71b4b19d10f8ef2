// sysinfo [--json] [NODE]: shows the nodes of the kernel's sysinfo tree.
//
// Lists the tree, or what is below a node that has only children. Of any other
// node it prints the data.
#define _GNU_SOURCE // asprintf
#include "user/libstrobe/sysinfo.h"
#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool as_json;

static const struct tool_option options[] = {
    { 0, "json", NULL, "The node and its subtree, as JSON", .flag = &as_json },
    { 0 },
};
static const struct tool tool = {
    .usage = "sysinfo [OPTIONS] [NODE]",
    .options = options,
    .notes =
        "A node is a path as system.cpus, system.tasks.1, kernel.version;\n"
        "without one the whole tree is listed. Numbered children, as\n"
        "system.tasks.1, are counted in the list, not shown\n",
};

static char *join(const char *path, const char *key)
{
    char *child;

    if (asprintf(&child, "%s%s%s", path, path[0] != '\0' ? "." : "", key) < 0)
        fail(1, "not enough memory for the list");
    return child;
}

static bool is_number(const char *key)
{
    return isdigit((unsigned char)key[0]);
}

// ---- list

static unsigned count_numbers(const char *keys)
{
    unsigned n = 0;

    for (; *keys != '\0'; keys += strlen(keys) + 1)
        n += is_number(keys);
    return n;
}

static void describe(struct table *t, const char *path, int type)
{
    uint64_t value;

    if (SYSINFO_KIND(type) == SYSINFO_VALUE &&
        sysinfo_read_value(path, &value) == 0) {
        table_add(t, "%" PRIu64 " %s", value,
                  sysinfo_unit_name(SYSINFO_WHAT(type)));
        return;
    }
    if (SYSINFO_KIND(type) == SYSINFO_TEXT) {
        table_add_text(t, "text");
        return;
    }
    int size = sysinfo_get_data(path, NULL, 0);
    if (size < 0)
        table_add_text(t, "?");
    else {
        const struct sysinfo_record_type *r =
            sysinfo_record_type(SYSINFO_WHAT(type));
        size_t count = r != NULL ? (size_t)size / r->size : 0;
        table_add(t, "%zu record%s: %s", count, count == 1 ? "" : "s",
                  r != NULL ? r->name : "of a new type");
    }
}

static void list(struct table *t, const char *path)
{
    int type = sysinfo_get_type(path);
    char *keys = type >= 0 ? sysinfo_read_keys(path) : NULL;

    if (!keys)
        return; // removed since it was listed
    if (SYSINFO_KIND(type) != SYSINFO_SUBTREE) {
        unsigned numbers = count_numbers(keys);
        table_add_text(t, path);
        describe(t, path, type);
        if (numbers > 0)
            table_add(t, "%u", numbers);
        else
            table_add_text(t, "");
    }
    for (char *key = keys; *key != '\0'; key += strlen(key) + 1) {
        if (is_number(key))
            continue;
        char *child = join(path, key);
        list(t, child);
        free(child);
    }
    free(keys);
}

static void print_list(const char *path)
{
    static const struct table_column columns[] = {
        { "Node", false },
        { "Holds", false },
        { "Children", true },
    };
    struct table t;

    table_init(&t, columns, 3);
    list(&t, path);
    table_print(&t, stdout);
}

// ---- data of a node

static void print_data(const char *path, int type)
{
    uint32_t record = SYSINFO_WHAT(type);
    size_t count;
    void *records;

    if (!sysinfo_record_type(record)) {
        errno = EPROTO;
        sysinfo_fail(path);
    }
    records = sysinfo_read_records(path, record, &count);
    if (!records)
        sysinfo_fail(path);
    sysinfo_print(stdout, record, records, count);
    free(records);
}

static void print_value(const char *path, int type)
{
    const char *unit = sysinfo_unit_name(SYSINFO_WHAT(type));
    uint64_t value;

    if (sysinfo_read_value(path, &value) < 0)
        sysinfo_fail(path);
    printf("%" PRIu64 "%s%s\n", value, unit[0] != '\0' ? " " : "", unit);
}

static void print_text(const char *path)
{
    size_t size;
    char *text = sysinfo_read(path, &size);

    if (text)
        fwrite(text, 1, size, stdout);
    else
        sysinfo_fail(path);
    free(text);
}

static void print(const char *path, int type)
{
    switch (SYSINFO_KIND(type)) {
    case SYSINFO_VALUE:
        print_value(path, type);
        break;
    case SYSINFO_DATA:
        print_data(path, type);
        break;
    case SYSINFO_TEXT:
        print_text(path);
        break;
    default:
        print_list(path);
        break;
    }
}

// ---- JSON

static bool json(const char *path);

static void json_children(const char *path)
{
    char *keys = sysinfo_read_keys(path);
    const char *separator = "\n";

    fputc('{', stdout);
    for (char *key = keys; key != NULL && *key != '\0';
         key += strlen(key) + 1) {
        char *child = join(path, key);
        fputs(separator, stdout);
        json_string(stdout, key, strlen(key));
        fputs(": ", stdout);
        if (!json(child)) // removed since it was listed
            fputs("null", stdout);
        free(child);
        separator = ",\n";
    }
    fputs("\n}", stdout);
    free(keys);
}

static bool json_leaf(const char *path, int type)
{
    const struct sysinfo_record_type *r =
        sysinfo_record_type(SYSINFO_WHAT(type));
    size_t size;
    char *data = sysinfo_read(path, &size);
    uint64_t value;

    if (!data)
        return false;
    switch (SYSINFO_KIND(type)) {
    case SYSINFO_DATA:
        if (r)
            sysinfo_print_json(stdout, SYSINFO_WHAT(type), data,
                               size / r->size);
        break;
    case SYSINFO_VALUE:
        memcpy(&value, data, sizeof(value));
        printf("%" PRIu64, value);
        break;
    default:
        json_string(stdout, data, size);
    }
    free(data);
    return SYSINFO_KIND(type) != SYSINFO_DATA || r != NULL;
}

// Returns false, and prints nothing, when the node does not exist.
static bool json(const char *path)
{
    int type = sysinfo_get_type(path);

    if (type < 0)
        return false;
    if (SYSINFO_KIND(type) != SYSINFO_SUBTREE)
        return json_leaf(path, type);
    json_children(path);
    return true;
}

int main(int argc, char *argv[])
{
    int first = options_parse(&tool, argc, argv);

    if (argc - first > 1) {
        complain("one node at a time");
        options_wrong(&tool);
    }
    const char *path = first < argc ? argv[first] : "";
    int type = sysinfo_get_type(path);
    if (type < 0)
        sysinfo_fail(path[0] != '\0' ? path : "the tree");
    if (as_json) {
        if (!json(path))
            sysinfo_fail(path);
        putchar('\n');
    } else {
        print(path, type);
    }
    return sysinfo_finish();
}
