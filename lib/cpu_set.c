#include "lib/cpu_set.h"

#include "lib/string.h"

_Static_assert(CPU_MAX <= 1000, "put_number");

u32 cpu_set_words = 1;

// The last member of the run of members that begins with `first`.
static u32 run_end(const struct cpu_set *s, u32 first)
{
    u32 last = first;
    while (last + 1 < CPU_MAX && cpu_set_has(s, last + 1))
        last++;
    return last;
}

// A CPU's number, at most three digits. Returns its end.
static char *put_number(char *out, u32 cpu)
{
    if (cpu >= 100)
        *out++ = (char)('0' + cpu / 100);
    if (cpu >= 10)
        *out++ = (char)('0' + cpu / 10 % 10);
    *out++ = (char)('0' + cpu % 10);
    return out;
}

#define PART_MAX 8u // ",254-255"

// Written by hand: sysinfo makes one list for each thread.
const char *cpu_set_list(const struct cpu_set *s, char *out, u32 size)
{
    char *at = out;
    u32 next;
    for (u32 first = cpu_set_next(s, 0); first < CPU_MAX; first = next) {
        char part[PART_MAX], *end = part;
        u32 last = run_end(s, first);
        if (at != out)
            *end++ = ',';
        end = put_number(end, first);
        if (last > first) {
            *end++ = '-';
            end = put_number(end, last);
        }
        u32 length = (u32)(end - part);
        if ((u32)(at - out) + length + 2 > size) { // room for the mark
            *at++ = '+';
            break;
        }
        memcpy(at, part, length);
        at += length;
        next = last + 1 < CPU_MAX ? cpu_set_next(s, last + 1) : CPU_MAX;
    }
    *at = '\0';
    return out;
}
