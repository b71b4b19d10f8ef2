// The user call chain of a sample, completed with the program's call frame
// information (user/libread/call_chain.h), and checked against its code.
#pragma once

#include "images.h"
#include "stream.h"

// The program of a task. An address in memory minus `load_bias` is an address
// of the image.
struct user_code {
    uint32_t image, load_bias;
    uint32_t vdso; // address of the vDSO in the program; 0: unknown
};

// Writes the chain, as addresses in memory, to `out`, which has room for
// USER_CHAIN_MAX entries. Returns the number of entries; *proven is that of
// chain_complete.
uint32_t user_chain(struct images *images, const struct user_code *user,
                    const struct stream_sample *s, uint32_t *out,
                    uint32_t *proven);

// Whether a caller found by frame pointers is plausible: whether the code
// before `back` calls the function at `callee`.
enum user_call {
    CALL_POSSIBLE,
    CALL_FARTHER, // it calls another function, which leads to `callee`
    CALL_NONE,    // no call instruction ends there
    CALL_UNKNOWN, // the code at `back` is unknown
};
enum user_call user_call(struct images *images, const struct user_code *user,
                         uint32_t callee, uint32_t back);
