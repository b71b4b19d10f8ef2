// Functions shared by the tools that show the sysinfo tree.
#include "sysinfo.h"

#include "strobe.h"

#include <errno.h>
#include <string.h>

uint64_t sysinfo_milliseconds(uint64_t cycles, uint64_t hz)
{
    if (hz == 0)
        return 0;
    return cycles / hz * 1000 + cycles % hz * 1000 / hz;
}

uint32_t sysinfo_hundredths(uint32_t fixed)
{
    return ((uint64_t)fixed * 100 + 0x8000) >> 16;
}

uint64_t sysinfo_frequency(void)
{
    struct sysinfo_cpu cpu;

    if (sysinfo_get_cpu("system.cpus.0", &cpu) < 0)
        sysinfo_fail("system.cpus.0");
    return cpu.frequency;
}

static const char *problem(int error)
{
    switch (error) {
    case ENOSYS:
        return "this kernel has no sysinfo tree: it is not Strobe";
    case ENOENT:
        return "no such node (sysinfo lists the nodes)";
    case EPROTO:
        return "the kernel's record formats differ from this program's: build "
               "both from the same source";
    case EPERM:
        return "this is not for every user: root may read it, and so may the "
               "users that the kernel argument profile_users= names";
    case ENOMEM:
        return "not enough memory for the answer: end some tasks";
    default:
        return strerror(error);
    }
}

void sysinfo_fail(const char *path)
{
    fail(1, "%s: %s", path, problem(errno));
}

bool sysinfo_parse_task(const char *option, const char *text, uint32_t *id)
{
    if (decimal(text, 0, SYSINFO_ALL - 1, id))
        return true;
    complain("%s %s: not a task's number (tasks shows them)", option, text);
    return false;
}

int sysinfo_finish(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    complain("writing the output: %s", strerror(errno));
    return 1;
}
