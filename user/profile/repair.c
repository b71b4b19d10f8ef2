// --repair FILE: repairs a truncated perf.data file.
#include "profile.h"

#include "user/libprofile/perf_repair.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void repair(const char *path)
{
    struct perf_repaired r;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        fail(1, "%s: %s", path, strerror(errno));
    const char *problem = perf_repair(fd, &r);
    if (problem)
        fail(1, "%s: %s", path, problem);
    perf_repaired_print(stdout, path, &r);
    close(fd);
}
