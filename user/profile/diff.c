// profile diff A B: compares files that profile -o or sprofile -o has written.
#include "profile.h"

#include "user/libprofile/choose_event.h"
#include "user/libprofile/diff.h"
#include "user/libprofile/mapping.h"
#include "user/libstrobe/options.h"
#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_DEFAULT 20

static bool json, total;
static uint32_t rows = ROWS_DEFAULT;
static const char *event;

static const struct tool_option options[] = {
    { 'n', "rows", "N", "Length of the table (20); 0: all", .number = &rows,
      .max = INT_MAX },
    { 'T', "total", NULL, "Functions including their callees", .flag = &total },
    { 'j', "json", NULL, "Everything, as JSON", .flag = &json },
    { 'e', "event", "NAME", "The event, of files with several",
      .text = &event },
    { 0 },
};
static const struct tool tool = {
    .usage = "profile diff [OPTIONS] BEFORE AFTER\n"
             "       profile diff [OPTIONS] BEFORE... vs AFTER...",
    .notes = "The files are from profile -o and sprofile -o. With several on "
             "each side the\noutput has the significance of each "
             "difference.\n",
    .options = options,
};

static bool is_kernel_of(const struct image *m)
{
    uint8_t id[BUILD_ID_MAX];

    return kernel_build_id(id) == m->build_id_size &&
           memcmp(id, m->build_id, m->build_id_size) == 0;
}

// The file of a program, or of the kernel, may now be another build than the
// one that was profiled: its build id is checked.
static void *find(void *arg, const struct image *m, size_t *size,
                  const char **problem)
{
    struct mapping now;

    (void)arg;
    *problem = "not the build that was profiled";
    if (m->build_id_size > 0 && strcmp(m->path, "[kernel]") == 0 &&
        !is_kernel_of(m))
        return NULL;
    void *bytes = program_read(m->path, size);
    if (!bytes) {
        *problem = "cannot read its file";
        return NULL;
    }
    if (m->build_id_size == 0 || m->path[0] == '[' ||
        (mapping_find(&now, bytes, *size) &&
         now.build_id_size == m->build_id_size &&
         memcmp(now.build_id, m->build_id, m->build_id_size) == 0))
        return bytes;
    free(bytes);
    return NULL;
}

static void add(struct diff *d, const char *path)
{
    struct samples samples;
    struct perf_events events;
    struct perf_file file = { 0 };
    size_t size;
    void *bytes = program_read(path, &size);

    if (!bytes)
        fail(1, "%s: %s", path, strerror(errno));
    if (samples_init(&samples, NULL) < 0)
        fail(1, "not enough memory");
    samples.images.find = find;
    const char *problem = perf_read_events(&events, bytes, size);
    if (!problem) {
        file.event = choose_event(&events, path, event);
        problem = perf_read(&file, 1, &samples, bytes, size);
    }
    free(bytes);
    if (!problem)
        problem = diff_add(d, &file, &samples);
    if (problem)
        fail(1, "%s: %s", path, problem);
    for (uint32_t i = 0; i < samples.images.count; i++) {
        const struct image *m = &samples.images.list[i];
        if (i != IMAGE_UNKNOWN && m->loaded && m->problem)
            complain("%s: %s: %s; its functions are not distinguished", path,
                     m->path, m->problem);
    }
    samples_free(&samples);
}

int diff(int argc, char *argv[])
{
    struct diff d;
    int at = options_parse(&tool, argc, argv);
    const char *problem = diff_init(&d, total, argc - at, argv + at);

    if (problem) {
        complain("%s", problem);
        options_wrong(&tool);
    }
    for (uint32_t i = 0; i < d.runs; i++)
        add(&d, d.files[i]);
    if (json)
        diff_json(stdout, &d);
    else
        diff_print(stdout, &d, rows);
    diff_free(&d);
    return 0;
}
