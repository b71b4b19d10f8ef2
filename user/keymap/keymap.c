// keymap [NAME]: shows or changes the layout of the keyboards
//
// It holds for all of them, from the next key on, until the machine is
// restarted.
#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICE "/dev/keymap"

static bool all;

static const struct tool_option options[] = {
    { 'l', "list", NULL, "List all layouts, the current one in brackets",
      .flag = &all },
    { 0 },
};
static const struct tool tool = {
    .usage = "keymap [OPTIONS] [NAME]",
    .options = options,
    .notes = "Without NAME the current layout is printed. As a kernel "
             "argument, keymap=NAME\nsets it from the start.\n",
};

// Reads the layouts' names, without the line's end.
static void names(char *text, size_t size)
{
    int fd = open(DEVICE, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (n < 0)
        fail(1, "%s: %s", DEVICE, strerror(errno));
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
}

static void show_current(void)
{
    char text[128];
    names(text, sizeof(text));
    char *name = strchr(text, '['), *end = name ? strchr(name, ']') : NULL;
    if (!end)
        fail(1, "%s: no layout is current: %s", DEVICE, text);
    printf("%.*s\n", (int)(end - name - 1), name + 1);
}

static void change(const char *name)
{
    char text[128];
    int fd = open(DEVICE, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && *name && write(fd, name, strlen(name)) >= 0)
        return;
    if (fd < 0 || (*name && errno != EINVAL))
        fail(1, "%s: %s", DEVICE, strerror(errno));
    names(text, sizeof(text));
    fail(2, "%s: no such layout: there are %s", name, text);
}

int main(int argc, char **argv)
{
    int first = options_parse(&tool, argc, argv);
    if (argc - first > (all ? 0 : 1)) {
        complain("%s: one argument too many", argv[argc - 1]);
        options_wrong(&tool);
    }
    if (all) {
        char text[128];
        names(text, sizeof(text));
        puts(text);
    } else if (first < argc) {
        change(argv[first]);
    } else {
        show_current();
    }
    return 0;
}
