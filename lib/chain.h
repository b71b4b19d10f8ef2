// The user's call chain of a sample (strobe/kbox.h) made whole.
//
// The kernel follows frame pointers. Where the innermost function's frame does
// not stand (its first and last instructions, functions in assembler that have
// none), its caller is missing in that chain: it is found by the compiler's
// call frame information among the words of the stack that the sample carries.
#pragma once

#include "lib/row_cache.h"

struct chain_sample {
    const u32 *pc; // the user's chain
    u32 depth;
    const u32 *stack; // esp, first frame, the stack from esp on
    u32 stack_words;
    bool gap; // SPROFILE_F_USER_GAP
};

// The code that a program runs: its own, and the vDSO's, which lies from
// `vdso_base` on. Of either nothing may be known: NULL.
struct chain_code {
    const struct cfi_program *program, *vdso;
    u32 vdso_base, vdso_bytes;
};

// Writes the chain to `out`, which has room for depth + CHAIN_MORE entries;
// returns how many.
#define CHAIN_MORE 8
u32 chain_complete(struct row_cache *rows, const struct chain_code *code,
                   const struct chain_sample *s, u32 *out);
