// The user's call chain of a sample, completed by what its program's call frame
// information tells (lib/chain.h), and checked against its code.
#pragma once

#include "images.h"
#include "stream.h"

// What a task ran. Addresses in its memory less `load_bias` are the image's
// own.
struct user_code {
    uint32_t image, load_bias;
    uint32_t vdso; // where the vDSO lies in it; 0: nowhere known
};

// Returns how many entries were written to `out`, which has room for
// USER_CHAIN_MAX: addresses in memory; *proven: as chain_complete says.
uint32_t user_chain(struct images *images, const struct user_code *user,
                    const struct stream_sample *s, uint32_t *out,
                    uint32_t *proven);

// Whether what frame pointers say can be: that the code before `back` has
// called the code at `callee`.
enum user_call {
    CALL_POSSIBLE,
    CALL_FARTHER, // it has called something that has called it
    CALL_NONE,    // there is no call
    CALL_UNKNOWN, // nothing is known of the code at `back`
};
enum user_call user_call(struct images *images, const struct user_code *user,
                         uint32_t callee, uint32_t back);
