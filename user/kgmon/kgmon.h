// Shared by both sides of kgmon: the one in the background, which holds the
// trace of calls and the samples, and the commands.
#pragma once

#include "user/libstrobe/ipc.h"
#include "user/libstrobe/strobe.h"
#include "user/libstrobe/tracing.h"

#define KGMON_NAME "kgmon" // of the naming service
#define KGMON_BIN_BYTES 4u

// Calls to the one in the background. All are answered with 0 or -errno.
enum kgmon_method {
    KGMON_PAUSE = IPC_M_USER, // arg[0]: 1 pauses, 0 resumes
    KGMON_RESET,
    KGMON_END,
    // IPC_M_DATA_READ, whose third word is one of these:
    KGMON_STATE, // struct kgmon_state
    KGMON_BINS,  // uint32_t of each bin; the fourth word: from this bin on
};

struct kgmon_state {
    uint32_t paused;
    uint32_t low, bins; // of the histogram: its first address, 4-byte bins
    uint32_t outside;   // samples of the kernel outside of it
    uint64_t kernel, idle, user;
    struct sprofile_info info;
};

struct kgmon_begin {
    struct calls_options calls;
    struct sprofile_options samples;
};

// Begins, and returns in the parent when it has: 0, or an exit status after a
// message.
int background_begin(const struct kgmon_begin *b);
