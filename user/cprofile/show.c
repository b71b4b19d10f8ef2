// Prints a trace, or writes it to a file.
#include "cprofile.h"

#include "user/libprofile/calls_file.h"
#include "user/libprofile/function_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

// --- names ------------------------------------------------------------------

static const char *name_of(void *arg, uint32_t address)
{
    (void)arg;
    return call_is_root(address) ? call_root_name(address)
                                 : function_name(address)->name;
}

// All that there are, if all of them are printed or compared.
static void want_names(const struct settings *s, const struct calls_info *info)
{
    const struct calls_node *nodes = (const void *)(info + 1);
    const struct calls_arc *arcs = (const void *)(info + 1);

    if (s->rows && !s->json && s->sort == CALLS_BY_TIME)
        return;
    for (uint32_t i = 0; i < info->records; i++) {
        if (info->mode != CALLS_PATHS) {
            function_wanted(arcs[i].from - 1);
            function_wanted(arcs[i].to);
        } else if (!call_is_root(nodes[i].function)) {
            function_wanted(nodes[i].function);
        }
    }
}

// --- JSON -------------------------------------------------------------------

static void put_member(const char *name, uint64_t value)
{
    printf("\"%s\": %" PRIu64 ", ", name, value);
}

static void put_info(const struct calls_info *i)
{
    put_member("overflow", i->overflow);
    put_member("too_deep", i->too_deep);
    put_member("no_frames", i->no_frames);
    put_member("functions", i->functions);
    put_member("cpus", i->cpus);
    put_member("task", i->task);
    put_member("tsc_hz", i->tsc_hz);
    put_member("elapsed", i->elapsed);
    put_member("outside_caller", i->outside_caller);
    put_member("outside_own", i->outside_own);
    put_member("stopped", i->stopped);
}

static void put_name(const char *member, uint32_t address)
{
    const char *name = name_of(NULL, address);

    printf("\"%s\": ", member);
    json_string(stdout, name, strlen(name));
}

static void put_paths(const struct call_paths *p)
{
    printf("\"paths\": [");
    for (uint32_t i = 0; i < p->count; i++) {
        const struct call_path *path = &p->list[i];
        printf("%s\n  {", i ? "," : "");
        put_member("caller", path->parent);
        put_member("calls", path->calls);
        put_member("open", path->open);
        put_member("own", path->own);
        put_member("total", path->total);
        put_member("tracing", path->tracing);
        put_member("blocked", path->blocked);
        put_member("interrupted", path->interrupted);
        put_member("longest", path->longest);
        if (path->shortest != UINT64_MAX)
            put_member("shortest", path->shortest);
        put_name("function", path->function);
        putchar('}');
    }
    printf("\n]}\n");
}

static void put_arcs(const struct calls_arc *arcs, uint32_t count)
{
    printf("\"arcs\": [");
    for (uint32_t i = 0; i < count; i++) {
        printf("%s\n  {\"calls\": %" PRIu64 ", \"place\": %u, ", i ? "," : "",
               arcs[i].count, arcs[i].from);
        put_name("from", arcs[i].from - 1);
        printf(", ");
        put_name("to", arcs[i].to);
        putchar('}');
    }
    printf("\n]}\n");
}

// --- tables -----------------------------------------------------------------

static void show_paths(const struct settings *s, const struct call_printing *c,
                       const struct calls_info *info)
{
    struct call_paths paths;
    const char *problem =
        call_paths_merge(&paths, info, (const void *)(info + 1), -1);

    if (problem)
        fail(1, "the kernel's records: %s", problem);
    if (s->json) {
        put_paths(&paths);
    } else {
        if (!s->paths_only && !s->tree)
            call_print_functions(c, &paths);
        if (!s->functions_only) {
            if (!s->paths_only && !s->tree)
                putchar('\n');
            (s->tree ? call_print_tree : call_print_paths)(c, &paths);
        }
    }
    call_paths_free(&paths);
}

static void show_arcs(const struct settings *s, const struct call_printing *c,
                      const struct calls_info *info)
{
    uint32_t count;
    struct calls_arc *arcs =
        call_arcs_merge(info, (const void *)(info + 1), -1, &count);

    if (!arcs)
        fail(1, "not enough memory for the report");
    if (s->json)
        put_arcs(arcs, count);
    else
        call_print_arcs(c, arcs, count);
    free(arcs);
}

// --- the file ---------------------------------------------------------------

// As it is on the command line, as far as there is room.
static void join(char *out, size_t size, char *const *words)
{
    size_t used = 0;

    out[0] = '\0';
    for (; *words && used < size; words++)
        used += (size_t)snprintf(out + used, size - used, "%s%s",
                                 used ? " " : "", *words);
}

static bool write_file(const struct settings *s, const struct calls_info *info)
{
    struct calls_file_header h = { .info = *info };
    struct utsname name;
    const void *records = info + 1;

    if (uname(&name) == 0)
        snprintf(h.kernel, sizeof(h.kernel), "%s", name.version);
    h.build_id_size = kernel_build_id(h.build_id);
    join(h.command, sizeof(h.command), s->argv);
    calls_file_seal(&h, records);
    FILE *f = fopen(s->output, "w");
    bool good =
        f && fwrite(&h, sizeof(h), 1, f) == 1 &&
        fwrite(records, h.record_size, info->records, f) == info->records;
    int error = errno;
    if (f && fclose(f) != 0 && good) {
        good = false;
        error = errno;
    }
    if (!good)
        complain("-o %s: %s", s->output, strerror(error));
    return good;
}

// The file is written first: what is printed may be cut off by a pager.
int show(const struct settings *s, const struct calls_info *info)
{
    struct call_printing c = {
        .out = stdout,
        .sort = s->sort,
        .rows = s->rows,
        .min = s->min,
        .full_paths = s->full_paths,
        .show_all = "-n 0",
        .tsc_hz = info->tsc_hz,
        .name = name_of,
    };
    bool good = !s->output || write_file(s, info);

    want_names(s, info);
    if (s->json) {
        putchar('{');
        put_info(info);
    } else {
        call_print_header(&c, info);
    }
    if (info->mode == CALLS_PATHS)
        show_paths(s, &c, info);
    else
        show_arcs(s, &c, info);
    return good ? 0 : 1;
}
