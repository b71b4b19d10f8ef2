#include "cost.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "user/libstrobe/sysinfo.h"

#define NET_THREAD "net"
#define KERNEL_TASK 0

static uint64_t net_cycles(void)
{
    size_t count;
    struct sysinfo_thread *t = sysinfo_read_thread("system.threads", &count);
    uint64_t cycles = 0;

    for (size_t i = 0; t && i < count; i++) {
        if (t[i].task == KERNEL_TASK && strcmp(t[i].name, NET_THREAD) == 0)
            cycles += t[i].kernel;
    }
    free(t);
    return cycles;
}

void cost_read(struct cost *c)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    c->program_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    c->net_ns =
        (uint64_t)((double)net_cycles() * 1e9 / (double)sysinfo_frequency());
}
