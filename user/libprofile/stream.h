// The record stream of a profile session (strobe/kbox.h), read without trust:
// it may come from a file that was cut off or changed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <strobe/kbox.h>

#include "lib/chain.h"

// A sample, its parts found and checked.
struct stream_sample {
    uint64_t time, period;
    uint32_t task, thread;
    uint16_t cpu, flags; // SPROFILE_F_...
    // The chains, the innermost first; of a sample of user code the kernel's
    // is empty.
    const uint32_t *kernel, *user, *stack;
    uint32_t kernel_depth, user_depth, stack_words;
    const struct sprofile_signal *signals;
    uint32_t signal_count;
};

// The user's chain made whole (user_chain.h) has at most so many entries.
#define USER_CHAIN_MAX CHAIN_MAX

// Who is told of what the stream holds; any may be NULL.
struct stream_reader {
    void (*sample)(void *arg, const struct stream_sample *s);
    void (*task)(void *arg, const struct sprofile_task *t); // strings end
    void (*lost)(void *arg, uint32_t cpu, uint64_t count);
    void *arg;
    uint64_t malformed; // records that made no sense, and were passed over
};

// Reads whole records from `bytes`; returns how many bytes it took: what is
// left is the beginning of a record. A record whose size makes no sense ends
// the stream: it is counted, and all is taken.
size_t stream_read(struct stream_reader *r, const void *bytes, size_t size);
