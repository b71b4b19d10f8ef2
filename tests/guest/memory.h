// Memory that tests take and hold until they are killed.
#pragma once

#include "test.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#define PAGE 4096u

static inline size_t free_memory(void)
{
    struct sysinfo info;
    check(sysinfo(&info) == 0);
    return (size_t)info.freeram * info.mem_unit;
}

static inline void touch(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED);
    for (size_t i = 0; i < bytes; i += PAGE)
        memory[i] = 1;
}

static inline void wait_killed(void)
{
    for (;;)
        pause();
}
