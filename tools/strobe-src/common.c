// Options, arguments and output shared by several commands.
#include "strobe.h"

#include <errno.h>
#include <string.h>

uint32_t option_number(const struct tool *tool, const char *option,
                       const char *text, uint32_t min, uint32_t max)
{
    uint32_t value;

    if (decimal(text, min, max, &value))
        return value;
    complain("%s %s: not a number from %u to %u", option, text, min, max);
    options_wrong(tool);
}

struct view_filter common_filter(const struct tool *tool,
                                 const struct common *c)
{
    struct view_filter f = { .by_task = c->task != 0, .task = c->task };

    if (c->cpu) {
        f.by_cpu = true;
        f.cpu = option_number(tool, "--cpu", c->cpu, 0, UINT16_MAX);
    }
    if (c->busy)
        f.modes = 1u << MODE_IDLE;
    return f;
}

const char *one_file(const struct tool *tool, int argc, char *argv[], int at)
{
    if (argc - at == 1)
        return argv[at];
    if (argc == at)
        complain("no file given; profile -o and sprofile -o write one");
    else
        complain("%s: one file at a time", argv[at + 1]);
    options_wrong(tool);
}

FILE *result_open(const char *path)
{
    FILE *out = path != NULL ? fopen(path, "w") : stdout;

    if (!out)
        fail(1, "%s: %s", path, strerror(errno));
    return out;
}

void result_close(FILE *out, const char *path)
{
    bool bad = fflush(out) != 0 || ferror(out);

    if (out != stdout && fclose(out) != 0)
        bad = true;
    if (bad)
        fail(1, "%s: %s", path != NULL ? path : "writing", strerror(errno));
}
