// The kernel's own symbol table, put into the image by the build
// (tools/build/ksyms). The first link pass uses the empty one here. Its
// addresses are those for which the image is linked.

#include "arch/mmu.h"
#include "kernel/base/log.h"

#define WEAK __attribute__((weak))

extern const u32 ksym_count WEAK;
extern const u32 ksym_addr[] WEAK; // sorted
extern const u32 ksym_name[] WEAK; // offsets into ksym_names, and their end
extern const u16 ksym_size[] WEAK; // 0: of assembler code, unknown
extern const char ksym_names[] WEAK;

// The code of each object, and its source file.
extern const u32 ksym_object_count WEAK;
extern const u32 ksym_object_addr[] WEAK; // sorted
extern const u32 ksym_object_file[] WEAK; // as ksym_name, into ksym_files
extern const char ksym_files[] WEAK;

extern char text_end[]; // linker.ld

static NOTRACE bool is_code(u32 pc)
{
    return &ksym_count && pc >= (u32)text_start && pc < (u32)text_end;
}

static NOTRACE u32 symbol_at(u32 i)
{
    return moved_address(ksym_addr[i]);
}

// How many of the sorted addresses are at or below pc.
static NOTRACE u32 count_until(const u32 *sorted, u32 count, u32 pc)
{
    u32 low = 0, high = count;
    pc = linked_address(pc);
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
        *offset = pc - symbol_at(until - 1);
    return ksym_names + ksym_name[until - 1];
}

NOTRACE u32 ksym_start(u32 pc)
{
    u32 until = symbols_until(pc);
    return until ? symbol_at(until - 1) : 0;
}

static u32 length_at(const u32 *offsets, u32 index)
{
    return offsets[index + 1] - offsets[index] - 1;
}

const char *ksym_at(u32 index, u32 *address, u32 *length)
{
    if (!&ksym_count || index >= ksym_count)
        return NULL;
    *address = ksym_addr[index];
    *length = length_at(ksym_name, index);
    return ksym_names + ksym_name[index];
}

bool ksym_function(u32 pc, struct ksym_function *f)
{
    u32 i = f->symbol, o = f->object;
    if (!is_code(pc))
        return false;
    while (i < ksym_count && symbol_at(i) < pc)
        i++;
    f->symbol = i;
    if (i == ksym_count || symbol_at(i) != pc)
        return false;
    while (o + 1 < ksym_object_count &&
           moved_address(ksym_object_addr[o + 1]) <= pc)
        o++;
    f->object = o;
    u32 end = i + 1 < ksym_count ? symbol_at(i + 1) : (u32)text_end;
    f->bytes = ksym_size[i] ? ksym_size[i] : end - pc;
    f->name = ksym_names + ksym_name[i];
    f->name_length = length_at(ksym_name, i);
    f->file = ksym_files + ksym_object_file[o];
    f->file_length = length_at(ksym_object_file, o);
    return true;
}
