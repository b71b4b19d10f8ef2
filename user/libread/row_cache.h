// A cache of rows of call frame information (user/libread/cfi.h), by program
// and pc: most samples are in code that was sampled before, and decoding a row
// from its section again takes some thousand instructions.
//
// Its results equal those of cfi_row_at, including "no information". Its memory
// is limited to the table below; a row that hashes to a used slot replaces it.
// Not thread-safe.
#pragma once

#include "user/libread/cfi.h"

struct cfi_program {
    struct cfi_section sections[CFI_SECTIONS];
    const struct cfi_entry *entries; // sorted
    u32 count;
    // Distinguishes it from all other programs with rows in the same cache,
    // including those that no longer exist: a replaced program file is another
    // program. Not 0.
    u32 id;
};

#define ROW_CACHE_SLOTS 4096u // a power of two
struct row_cache {
    struct row_cache_slot {
        u32 program; // its id; 0: the slot is empty
        struct cfi_row row;
        bool known; // else there is no row for these addresses
    } slots[ROW_CACHE_SLOTS];
};

// The row of `pc`, or NULL. Valid until the next call.
const struct cfi_row *row_cache_find(struct row_cache *c,
                                     const struct cfi_program *p, u32 pc);
