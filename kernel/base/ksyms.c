// The kernel's own symbol table, put into the image by the build
// (tools/build/ksyms). The first link pass uses the empty one here.

#include "kernel/base/log.h"

#define WEAK __attribute__((weak))

extern const u32 ksym_count WEAK;
extern const u32 ksym_addr[] WEAK; // sorted
extern const u32 ksym_name[] WEAK; // offsets into ksym_names
extern const u16 ksym_size[] WEAK; // 0: of assembler code, unknown
extern const char ksym_names[] WEAK;

// The code of each object, and its source file.
extern const u32 ksym_object_count WEAK;
extern const u32 ksym_object_addr[] WEAK; // sorted
extern const u32 ksym_object_file[] WEAK; // offsets into ksym_files
extern const char ksym_files[] WEAK;

extern char text_start[], text_end[]; // linker.ld

static NOTRACE bool is_code(u32 pc)
{
    return &ksym_count && pc >= (u32)text_start && pc < (u32)text_end;
}

// How many of the sorted addresses are at or below pc.
static NOTRACE u32 count_until(const u32 *sorted, u32 count, u32 pc)
{
    u32 low = 0, high = count;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (sorted[middle] <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The number of symbols at or below pc; 0 outside the kernel's code.
static NOTRACE u32 symbols_until(u32 pc)
{
    return is_code(pc) ? count_until(ksym_addr, ksym_count, pc) : 0;
}

const char *ksym_lookup(u32 pc, u32 *offset)
{
    u32 until = symbols_until(pc);
    if (!until)
        return NULL;
    if (offset)
        *offset = pc - ksym_addr[until - 1];
    return ksym_names + ksym_name[until - 1];
}

NOTRACE u32 ksym_start(u32 pc)
{
    u32 until = symbols_until(pc);
    return until ? ksym_addr[until - 1] : 0;
}

const char *ksym_at(u32 index, u32 *address)
{
    if (!&ksym_count || index >= ksym_count)
        return NULL;
    *address = ksym_addr[index];
    return ksym_names + ksym_name[index];
}

static const char *file_of(u32 pc)
{
    u32 until = count_until(ksym_object_addr, ksym_object_count, pc);
    return until ? ksym_files + ksym_object_file[until - 1] : "?";
}

bool ksym_function(u32 pc, struct ksym_function *out)
{
    u32 until = symbols_until(pc);
    if (!until || ksym_addr[until - 1] != pc)
        return false;
    u32 end = until < ksym_count ? ksym_addr[until] : (u32)text_end;
    *out = (struct ksym_function){
        .name = ksym_names + ksym_name[until - 1],
        .file = file_of(pc),
        .bytes = ksym_size[until - 1] ? ksym_size[until - 1] : end - pc,
    };
    return true;
}
