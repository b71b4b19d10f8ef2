// Completes the user's call chain of a sample (strobe/kbox.h).
//
// The kernel follows frame pointers. Where a function's frame is not set up
// (its first and last instructions, assembly functions without one, code
// compiled without frame pointers), its caller is missing in that chain. It is
// found with the compiler's call frame information in the part of the stack
// that the sample carries. Where a signal handler returns to its signal frame,
// the chain continues with the code that the handler interrupted.
#pragma once

#include "user/libread/row_cache.h"
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

// The code that a program runs: its own, `load_bias` above its file's
// addresses, and the vDSO's, from `vdso_base` on. Either may be NULL: no
// information.
struct chain_code {
    const struct cfi_program *program, *vdso;
    u32 load_bias, vdso_base, vdso_bytes;
    u32 entry; // the program's entry point, which has no caller
};

// Marks: entries of a chain that are not addresses, even with 1 subtracted.
// Beyond the mark:
enum chain_mark {
    CHAIN_DEEP = 2,   // there are more than SPROFILE_FRAMES_MAX frames
    CHAIN_UNREADABLE, // there is memory that could not be read
    CHAIN_BROKEN,     // callers are missing; their callers may follow
    CHAIN_SHORT,      // the same: they are beyond the copy of the stack
    CHAIN_MARKS
};

// Writes the chain to `out`, which has room for CHAIN_MAX entries; returns how
// many. Entries after the first are return addresses, or interrupted addresses
// plus 1, or marks. *proven: for so many entries, from the first on, the
// following entry is certainly the caller; for the rest only frame pointers say
// so (chain_link). `rows` may be NULL: frame pointers are trusted.
#define CHAIN_MAX 320
u32 chain_complete(struct row_cache *rows, const struct chain_code *code,
                   const struct chain_sample *s, u32 *out, u32 *proven);

enum chain_link {
    LINK_FRAMED,  // the frame is set up at `pc`: its frame pointer leads to the
                  // caller's
    LINK_UNKNOWN, // no information on that code
    LINK_NONE,    // no frame is set up there
};
enum chain_link chain_link(struct row_cache *rows,
                           const struct chain_code *code, u32 pc);
