#include "lib/cpu_set.h"

#include "lib/format.h"
#include "lib/string.h"

u32 cpu_set_words = 1;

// The last member of the run of members that begins with `first`.
static u32 run_end(const struct cpu_set *s, u32 first)
{
    u32 last = first;
    while (last + 1 < CPU_MAX && cpu_set_has(s, last + 1))
        last++;
    return last;
}

const char *cpu_set_list(const struct cpu_set *s, char *out, u32 size)
{
    u32 used = 0;
    *out = '\0';
    for (u32 first = cpu_set_next(s, 0); first < CPU_MAX;) {
        char part[16];
        u32 last = run_end(s, first);
        const char *separator = used ? "," : "";
        if (last > first)
            format(part, sizeof(part), "%s%u-%u", separator, first, last);
        else
            format(part, sizeof(part), "%s%u", separator, first);
        u32 length = (u32)strlen(part);
        if (used + length + 2 > size) { // leaves room for the mark
            memcpy(out + used, "+", 2);
            return out;
        }
        memcpy(out + used, part, length + 1);
        used += length;
        first = last + 1 < CPU_MAX ? cpu_set_next(s, last + 1) : CPU_MAX;
    }
    return out;
}
