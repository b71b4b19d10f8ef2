// Parses the record stream of a profile session (strobe/kbox.h). The stream is
// not trusted, because it may be from a file that was truncated or changed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <strobe/kbox.h>

#include "user/libread/call_chain.h"

// A sample whose parts were located and checked.
struct stream_sample {
    uint64_t time, period;
    uint32_t task, thread;
    uint16_t cpu, flags; // SPROFILE_F_...
    // The chains, the innermost entry first. The kernel's chain is empty in a
    // sample of user code.
    const uint32_t *kernel, *user, *stack;
    uint32_t kernel_depth, user_depth, stack_words;
    const struct sprofile_signal *signals;
    uint32_t signal_count;
};

// Maximum number of entries in a completed user chain (user_chain.h).
#define USER_CHAIN_MAX CHAIN_MAX

// Callbacks for each type of record; any may be NULL.
struct stream_reader {
    void (*sample)(void *arg, const struct stream_sample *s);
    void (*task)(void *arg,
                 const struct sprofile_task *t); // strings are terminated
    void (*times)(void *arg, const struct sprofile_times *t);
    void (*lost)(void *arg, uint32_t cpu, uint64_t count);
    void *arg;
    uint64_t malformed; // invalid records that were skipped
};

// Reads whole records from `bytes`. Returns how many bytes were consumed; the
// rest is the beginning of a record. A record whose size is invalid ends the
// stream: it is counted as malformed, and all bytes are consumed.
size_t stream_read(struct stream_reader *r, const void *bytes, size_t size);
