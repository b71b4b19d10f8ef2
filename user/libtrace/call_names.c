// Names of system calls, from the table that the kernel's dispatch is made of.
#include "graph.h"

static const struct {
    uint32_t number;
    const char *name;
} calls[] = {
#define SYSCALL(number, name, ...) { number, #name },
#include <strobe/syscalls.def>
};

const char *trace_call_name(uint32_t number)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (calls[i].number == number)
            return calls[i].name;
    }
    return "?";
}

const char *trace_nth_call(uint32_t n, uint32_t *number)
{
    if (n >= sizeof(calls) / sizeof(calls[0]))
        return NULL;
    *number = calls[n].number;
    return calls[n].name;
}
