// strobe repair: repairs a perf.data file that was cut off. The guest's
// `profile --repair` uses the same code.
#include "strobe.h"

#include "user/libprofile/perf_repair.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static const struct tool_option options[] = { { 0 } };
static const struct tool tool = { .usage = "strobe repair FILE",
                                  .options = options };

int command_repair(int argc, char *argv[])
{
    int at = options_parse(&tool, argc, argv);
    const char *path = one_file(&tool, argc, argv, at);
    struct perf_repaired r;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        fail(1, "%s: %s", path, strerror(errno));
    const char *problem = perf_repair(fd, &r);
    close(fd);
    if (problem)
        fail(1, "%s: %s", path, problem);
    perf_repaired_print(stdout, path, &r);
    return 0;
}
