// The kernel's own symbol table, put into the image by the build
// (tools/build/ksyms.py). The first link pass uses the empty one here.

#include "kernel/base/log.h"

extern const u32 ksym_count __attribute__((weak));
extern const u32 ksym_addr[] __attribute__((weak)); // sorted
extern const u32 ksym_name[] __attribute__((weak)); // offsets into ksym_names
extern const char ksym_names[] __attribute__((weak));

extern char text_start[], text_end[]; // linker.ld

const char *ksym_lookup(u32 pc, u32 *offset)
{
    if (!&ksym_count || pc < (u32)text_start || pc >= (u32)text_end)
        return NULL;
    u32 low = 0, high = ksym_count; // the last symbol at or below pc
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (ksym_addr[middle] <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return NULL;
    if (offset)
        *offset = pc - ksym_addr[low - 1];
    return ksym_names + ksym_name[low - 1];
}

const char *ksym_at(u32 index, u32 *address)
{
    if (!&ksym_count || index >= ksym_count)
        return NULL;
    *address = ksym_addr[index];
    return ksym_names + ksym_name[index];
}
