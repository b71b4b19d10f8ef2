// The sending side of a transfer (transfer.h), without clock and line: it is
// told what came and when it has waited long enough.
#pragma once

#include <stdbool.h>

#include "user/libtransfer/frame.h"
#include "user/libtransfer/transfer.h"

struct sender {
    // Set by the user: where frames go, and the file.
    void (*put)(void *line, const uint8_t *frame, size_t size);
    void *line;
    int file;

    enum {
        SENDER_BEGINS,
        SENDER_SENDS,
        SENDER_ENDS,
        SENDER_DONE,
        SENDER_FAILED,
    } state;
    uint8_t begin[BEGIN_NAME + TRANSFER_NAME_MAX]; // the payload of BEGIN
    size_t begin_size;
    uint32_t id;
    uint64_t size;
    uint64_t resumed;      // from where on the receiver wanted it
    uint64_t acked, next;  // confirmed; to be sent next
    uint32_t turn;         // how often it has gone back
    uint32_t restarts;     // how often the end was not believed
    uint32_t unanswered;   // time-outs since an answer
    bool probing;          // after a time-out: one frame at a time
    uint64_t frames_again; // data frames that were sent more than once
    uint64_t furthest;     // what has been sent before
    char problem[TRANSFER_TEXT_MAX + 1]; // why SENDER_FAILED
};

// Reads the file once for its checksum and sends BEGIN. `name` is what it shall
// be called at the other end. Returns -1 (and errno) if it cannot be read or
// has a name that is too long.
int sender_start(struct sender *s, const char *name);

// A frame has come. What is no answer to this file is ignored.
void sender_take(void *sender, const struct frame *f);

// TRANSFER_TIMEOUT_MS have passed without a frame.
void sender_timeout(struct sender *s);
