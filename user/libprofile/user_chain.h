// The user's call chain of a sample, completed by what its program's call frame
// information tells (lib/chain.h).
#pragma once

#include "images.h"
#include "stream.h"

// `image` is what the task ran, `vdso` where the vDSO lies in it; 0: nowhere
// known. Entries but the first are return addresses. Returns how many were
// written to `out`, which has room for USER_CHAIN_MAX.
uint32_t user_chain(struct images *images, uint32_t image, uint32_t vdso,
                    const struct stream_sample *s, uint32_t *out);
