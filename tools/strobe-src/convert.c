// strobe convert STREAM -o FILE: makes a perf.data file from the file that the
// gdb command strobe-rings (tools/gdb) has read out of a hanging kernel.
//
// That file holds a struct stream_file, the session's options and its struct
// sprofile_info, both of the sizes given in the struct stream_file, and the
// records in the format of DATA_READ (strobe/kbox.h).
#include "strobe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/libprofile/perf_write.h"

#define STREAM_MAGIC "strob2\r\n"
#define PERF_DATA_MAGIC "PERFILE2"
#define MAGIC_SIZE 8

struct stream_file {
    char magic[MAGIC_SIZE];
    uint32_t options_size, info_size;
    uint32_t kernel_id_size;
    uint8_t kernel_id[20];
    char release[65], version[65]; // of the kernel, as in uname
    uint8_t pad[2];
};
_Static_assert(sizeof(struct stream_file) == 172, "as tools/gdb writes it");

struct dump {
    const char *path;
    struct sprofile_options asked;
    struct sprofile_info info;
    const uint8_t *records;
    size_t size;
};

static const char *output;
static struct common common;
static const struct tool_option options[] = {
    { 'o', "output", "FILE", "Output file", .text = &output },
    FILE_OPTIONS(common),
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe convert [OPTIONS] STREAM -o FILE",
    .options = options,
    .notes = "STREAM is the output of strobe-rings (tools/gdb/strobe.py)\n",
};

_Noreturn static void not_a_stream(const char *path, const uint8_t *bytes,
                                   size_t size)
{
    if (size >= MAGIC_SIZE && memcmp(bytes, PERF_DATA_MAGIC, MAGIC_SIZE) == 0)
        fail(1, "%s is a perf.data file already: strobe report reads it", path);
    fail(1, "%s is not from strobe-rings, or of another version", path);
}

// Checks and splits a file of any content. Ends the program if it is not valid.
static struct stream_file split(struct dump *d, const uint8_t *bytes,
                                size_t size)
{
    struct stream_file head;
    const size_t parts = sizeof(head) + sizeof(d->asked) + sizeof(d->info);

    if (size < parts)
        not_a_stream(d->path, bytes, size);
    memcpy(&head, bytes, sizeof(head));
    if (memcmp(head.magic, STREAM_MAGIC, MAGIC_SIZE) != 0 ||
        head.options_size != sizeof(d->asked) ||
        head.info_size != sizeof(d->info) ||
        head.kernel_id_size > sizeof(head.kernel_id))
        not_a_stream(d->path, bytes, size);
    memcpy(&d->asked, bytes + sizeof(head), sizeof(d->asked));
    memcpy(&d->info, bytes + sizeof(head) + sizeof(d->asked), sizeof(d->info));
    d->info.source[sizeof(d->info.source) - 1] = '\0';
    d->info.event[sizeof(d->info.event) - 1] = '\0';
    head.release[sizeof(head.release) - 1] = '\0';
    head.version[sizeof(head.version) - 1] = '\0';
    d->records = bytes + parts;
    d->size = size - parts;
    return head;
}

// Writes the file. `s` finds the kernel's file by its build id.
static void write_perf(const struct dump *d, struct samples *s,
                       const struct stream_file *head)
{
    char *command[] = { "strobe-rings", NULL };
    struct perf_environment environment = {
        .host = "strobe",
        .release = head->release,
        .version = head->version,
        .machine = "i686",
        .cpus = d->info.cpus,
        .command = command,
        .kernel_id_size = head->kernel_id_size,
    };
    struct perf_writer w;
    const char *problem;

    memcpy(environment.kernel_id, head->kernel_id,
           sizeof(environment.kernel_id));
    struct perf_event event = { &d->asked, &d->info, s };
    problem = perf_write_begin(&w, output, &environment, &event, 1);
    if (problem)
        fail(1, "-o %s: %s", output, problem);
    size_t taken = samples_add_stream(s, d->records, d->size);
    perf_write_totals(&w, 0, &d->info);
    problem = perf_write_end(&w);
    if (problem)
        fail(1, "-o %s: %s", output, problem);
    if (taken < d->size)
        complain("%s is cut off: the last %zu bytes are no whole record",
                 d->path, d->size - taken);
    if (s->reader.malformed > 0)
        complain("%s is damaged: records that made no sense are left out",
                 d->path);
}

int command_convert(int argc, char *argv[])
{
    struct dump d = { 0 };
    struct samples samples;
    struct elves elves;
    size_t size;

    d.path = one_file(&tool, argc, argv, options_parse(&tool, argc, argv));
    if (!output) {
        complain("-o FILE: where to?");
        options_wrong(&tool);
    }
    uint8_t *bytes = file_read(d.path, &size);
    if (!bytes)
        fail(1, "%s: %s", d.path, strerror(errno));
    struct stream_file head = split(&d, bytes, size);
    if (samples_init(&samples, NULL) < 0)
        fail(1, "not enough memory");
    elves_init(&elves, common.kernel, common.folders);
    samples.images.find = elves_read;
    samples.images.find_arg = &elves;
    struct image *kernel = &samples.images.list[IMAGE_KERNEL];
    memcpy(kernel->build_id, head.kernel_id, sizeof(head.kernel_id));
    kernel->build_id_size = head.kernel_id_size;
    write_perf(&d, &samples, &head);
    samples_free(&samples);
    elves_free(&elves);
    free(bytes);
    return 0;
}
