// A cache of rows of call frame information (lib/cfi.h), by program and pc:
// most samples fall into code that was sampled before, and reading a row out of
// its section again takes some thousand instructions.
//
// It says what cfi_row_at says, also where that is nothing. Its memory is the
// table below and no more; a row that falls on another one's slot replaces it.
// Not for several threads at once.
#pragma once

#include "lib/cfi.h"

struct cfi_program {
    struct cfi_section sections[CFI_SECTIONS];
    const struct cfi_entry *entries; // sorted
    u32 count;
    // Tells it from all others whose rows are in the same cache, also from
    // those that do not exist any more: a program that was replaced is another
    // one. Not 0.
    u32 id;
};

#define ROW_CACHE_SLOTS 4096u // a power of two
struct row_cache {
    struct row_cache_slot {
        u32 program; // its id; 0: the slot is empty
        struct cfi_row row;
        bool known; // else there is none for these addresses
    } slots[ROW_CACHE_SLOTS];
};

// The row of `pc`, or NULL. It stays until the next call.
const struct cfi_row *row_cache_find(struct row_cache *c,
                                     const struct cfi_program *p, u32 pc);
