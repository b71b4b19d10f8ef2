// The user's call chain of a sample (strobe/kbox.h) made whole.
//
// The kernel follows frame pointers. Where a function's frame does not stand
// (its first and last instructions, functions in assembler that have none, code
// compiled without frame pointers), its caller is missing in that chain: it is
// found by the compiler's call frame information in the part of the stack that
// the sample carries. Where a signal handler returns to its signal frame, the
// chain goes on with what the handler has interrupted.
#pragma once

#include "lib/row_cache.h"
#include <strobe/kbox.h>

struct chain_sample {
    const u32 *pc; // the user's chain
    u32 depth;
    const u32 *stack; // as in struct sprofile_sample
    u32 stack_words;
    u32 flags; // SPROFILE_F_USER_...
    const struct sprofile_signal *signals;
    u32 signal_count;
};

// The code that a program runs: its own, `load_bias` above where its file says,
// and the vDSO's, which lies from `vdso_base` on. Of either nothing may be
// known: NULL.
struct chain_code {
    const struct cfi_program *program, *vdso;
    u32 load_bias, vdso_base, vdso_bytes;
    u32 entry; // where the program starts: nothing has called that
};

// Entries of a chain that are no addresses, nor when 1 is taken off: beyond
// them
enum chain_mark {
    CHAIN_DEEP = 2,   // are more than SPROFILE_FRAMES_MAX frames
    CHAIN_UNREADABLE, // is memory that could not be read
    CHAIN_BROKEN,     // are callers that could not be found; then, perhaps,
                      // callers of those
    CHAIN_MARKS
};

// Writes the chain to `out`, which has room for CHAIN_MAX entries; returns how
// many. Entries but the first are return addresses, or interrupted addresses
// plus 1, or marks. *proven: so many entries, from the first on, have the entry
// behind them as their caller for sure; that of the others frame pointers say
// alone (chain_link). `rows` may be NULL: frame pointers are believed.
#define CHAIN_MAX 320
u32 chain_complete(struct row_cache *rows, const struct chain_code *code,
                   const struct chain_sample *s, u32 *out, u32 *proven);

enum chain_link {
    LINK_FRAMED,  // a frame stands at `pc`: its frame pointer leads to its
                  // caller's
    LINK_UNKNOWN, // nothing is known of that code
    LINK_NONE,    // none stands
};
enum chain_link chain_link(struct row_cache *rows,
                           const struct chain_code *code, u32 pc);
