// The kernel's own symbol table, put into the image by the build
// (tools/build/ksyms). The first link pass uses the empty one here.

#include "kernel/base/log.h"

#define WEAK __attribute__((weak))

extern const u32 ksym_count WEAK;
extern const u32 ksym_addr[] WEAK; // sorted
extern const u32 ksym_name[] WEAK; // offsets into ksym_names
extern const u16 ksym_size[] WEAK; // 0: of assembler code, unknown
extern const char ksym_names[] WEAK;

// The code of each object, by its start, and its source file.
extern const u32 ksym_object_count WEAK;
extern const struct ksym_object {
    u32 start, file; // an offset into ksym_files
} ksym_object[] WEAK;
extern const char ksym_files[] WEAK;

extern char text_start[], text_end[]; // linker.ld

static NOTRACE bool is_code(u32 pc)
{
    return &ksym_count && pc >= (u32)text_start && pc < (u32)text_end;
}

// The number of symbols at or below pc.
static NOTRACE u32 symbols_until(u32 pc)
{
    u32 low = 0, high = ksym_count;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (ksym_addr[middle] <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const char *ksym_lookup(u32 pc, u32 *offset)
{
    u32 until = is_code(pc) ? symbols_until(pc) : 0;
    if (!until)
        return NULL;
    if (offset)
        *offset = pc - ksym_addr[until - 1];
    return ksym_names + ksym_name[until - 1];
}

NOTRACE u32 ksym_start(u32 pc)
{
    u32 until = is_code(pc) ? symbols_until(pc) : 0;
    return until ? ksym_addr[until - 1] : 0;
}

const char *ksym_at(u32 index, u32 *address)
{
    if (!&ksym_count || index >= ksym_count)
        return NULL;
    *address = ksym_addr[index];
    return ksym_names + ksym_name[index];
}

u32 ksym_bytes(u32 pc)
{
    u32 until = is_code(pc) ? symbols_until(pc) : 0;
    if (!until)
        return 0;
    if (ksym_size[until - 1])
        return ksym_size[until - 1];
    u32 end = until < ksym_count ? ksym_addr[until] : (u32)text_end;
    return end - ksym_addr[until - 1];
}

const char *ksym_file(u32 pc)
{
    u32 i = is_code(pc) ? ksym_object_count : 0;
    while (i && ksym_object[i - 1].start > pc)
        i--;
    return i ? ksym_files + ksym_object[i - 1].file : NULL;
}
