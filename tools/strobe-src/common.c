// Options, arguments and output shared by several commands.
#include "strobe.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

// The file that becomes the output at result_close; "": there is none.
static struct {
    char name[PATH_MAX], becomes[PATH_MAX];
} unfinished;

static void remove_unfinished(void)
{
    if (unfinished.name[0] != '\0')
        unlink(unfinished.name);
}

// Creates a file beside `path`, which it may replace. Returns NULL if `path` is
// no regular file, or if its folder takes no other file.
static FILE *open_beside(const char *path)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;

    if (exists && (!S_ISREG(st.st_mode) || access(path, W_OK) < 0))
        return NULL;
    if (!realpath(path, unfinished.becomes))
        snprintf(unfinished.becomes, PATH_MAX, "%s", path);
    int n = snprintf(unfinished.name, PATH_MAX, "%s.%d", unfinished.becomes,
                     (int)getpid());
    FILE *out = n < PATH_MAX ? fopen(unfinished.name, "w+x") : NULL;
    if (!out)
        unfinished.name[0] = '\0';
    else if (exists)
        (void)!fchmod(fileno(out), st.st_mode & 07777);
    return out;
}

static FILE *open_in_place(const char *path)
{
    struct stat st;

    return fopen(path,
                 stat(path, &st) == 0 && S_ISREG(st.st_mode) ? "w+" : "w");
}

FILE *result_open(const char *path)
{
    FILE *out = path != NULL ? open_beside(path) : stdout;

    if (!out)
        out = open_in_place(path);
    if (!out)
        fail(1, "%s: %s", path, strerror(errno));
    atexit(remove_unfinished);
    return out;
}

void result_close(FILE *out, const char *path)
{
    bool bad = fflush(out) != 0 || ferror(out);

    if (out != stdout && fclose(out) != 0)
        bad = true;
    if (!bad && unfinished.name[0] != '\0')
        bad = rename(unfinished.name, unfinished.becomes) < 0;
    if (bad)
        fail(1, "%s: %s", path != NULL ? path : "writing", strerror(errno));
    unfinished.name[0] = '\0';
}
