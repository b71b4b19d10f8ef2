// strobe kallsyms: the kernel's functions in the format of Linux'
// /proc/kallsyms, for commands of perf that take the kernel's symbols only from
// --kallsyms (perf diff).
#include "strobe.h"

#include "user/libprofile/perf_format.h"

#define PAGE 4096u
#define NAME_SIZE 512

static struct common settings;

static const struct tool_option options[] = {
    FILE_OPTIONS(settings),
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe kallsyms [OPTIONS] FILE",
    .options = options,
    .notes =
        "Of the kernel that FILE was recorded on: perf diff --kallsyms=OUT\n",
};

int command_kallsyms(int argc, char *argv[])
{
    int at = options_parse(&tool, argc, argv);
    struct profile p;

    settings.no_inline = true;
    profile_open(&p, one_file(&tool, argc, argv, at), &settings);
    const struct image *kernel = images_load(&p.samples.images, IMAGE_KERNEL);
    if (kernel->problem)
        fail(1, "%s: %s", kernel->path, kernel->problem);
    // The first line shows perf that this kernel was not relocated.
    uint32_t first = images_kernel_start(kernel);
    printf("%016x T " PERF_KERNEL_SYMBOL "\n",
           kernel->symbols.table[first].start & -PAGE);
    for (uint32_t i = first; i < kernel->symbols.count; i++) {
        const struct symbol *s = &kernel->symbols.table[i];
        char name[NAME_SIZE];
        snprintf(name, sizeof(name), "%.*s", (int)s->name_size, s->name);
        printf("%016x t %s\n", s->start, printable(name));
    }
    profile_close(&p);
    return 0;
}
