// Call frame information (DWARF 4, section 6.4; its variant for exceptions: LSB
// 5.0 core, chapter 8.6): how to find a function's caller at each of its
// instructions. Compilers write it into .debug_frame or .eh_frame.
//
// Limited to what a profiler needs of an i386 program: the stack pointer, ebp
// and the return address. The sections are not trusted.
#pragma once

#include "lib/types.h"

struct cfi_section {
    const u8 *bytes;
    u32 size;
    u32 address;       // in memory, for .eh_frame
    bool eh;           // .eh_frame, else .debug_frame
    u32 unpacked_size; // compressed by zlib: the size of its contents; else 0
};

// The sections of an ELF32 file with such information, at most two; returns how
// many. They point into the image.
#define CFI_SECTIONS 2
u32 cfi_sections(const void *image, size_t size,
                 struct cfi_section out[CFI_SECTIONS]);
// Decompresses a section with an unpacked_size to `out`, which has room for
// that and must outlive it. A damaged one becomes empty.
void cfi_unpack(struct cfi_section *s, u8 *out);

// A function's entry in a section.
struct cfi_entry {
    u32 start, end; // code addresses, end exclusive
    u32 offset;     // of its FDE
    u32 section;    // the caller's number for it
};

// Writes up to `max` entries of a section, unsorted; returns the total number.
u32 cfi_entries(const struct cfi_section *s, u32 section, struct cfi_entry *out,
                u32 max);
// Sorts them by address and drops entries that overlap an earlier one.
u32 cfi_sort(struct cfi_entry *entries, u32 count);
// The entry that contains `pc`, or NULL.
const struct cfi_entry *cfi_find(const struct cfi_entry *entries, u32 count,
                                 u32 pc);

// The canonical frame address (CFA) is the value of the stack pointer before
// the call; the return address is just below it.
struct cfi_row {
    u32 start, end; // code addresses of this row, end exclusive
    s32 cfa_offset; // bytes
    s32 ebp_offset;
    bool by_ebp;       // the CFA is ebp + offset, else esp + offset
    bool cfa_loaded;   // the CFA is the word at ebp + offset: a function that
                       // realigns its stack
    bool ebp_saved;    // at CFA + ebp_offset; else ebp holds the caller's
                       // value, or that is lost
    bool ebp_in_frame; // it is saved at ebp + ebp_offset, not at the CFA's
};
// False: there is no information, or a row cannot represent it; then only
// `start` and `end` are set, the range without information. `pc` is in the
// entry.
bool cfi_row_at(const struct cfi_section *s, const struct cfi_entry *entry,
                u32 pc, struct cfi_row *out);
