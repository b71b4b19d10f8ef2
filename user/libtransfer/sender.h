// The sending side of a transfer (transfer.h), independent of clock and line:
// the caller passes in received frames and time-outs.
#pragma once

#include <stdbool.h>

#include "user/libtransfer/frame.h"
#include "user/libtransfer/transfer.h"

struct sender {
    // Set by the user: the output, and the file.
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
    uint64_t resumed;       // offset that the receiver asked to start from
    uint64_t acked, next;   // confirmed offset; offset to send next
    uint32_t turn;          // number of times it has gone back
    uint32_t restarts;      // number of times data was asked for after END
    uint32_t unanswered;    // time-outs since the last answer
    bool ended;             // END was sent after the last START
    bool probing;           // after a time-out: one frame at a time
    uint64_t frames_resent; // data frames that were sent more than once
    uint64_t furthest;      // highest offset that was sent
    char problem[TRANSFER_TEXT_MAX + 1]; // the reason for SENDER_FAILED
};

// Reads the file once for its checksum and sends BEGIN. `name` is the file's
// name on the receiving side. Returns -1 and sets errno if the file cannot be
// read or the name is too long.
int sender_start(struct sender *s, const char *name);

// Handles a received frame. Frames that do not answer this file are ignored.
void sender_take(void *sender, const struct frame *f);

// To be called when TRANSFER_TIMEOUT_MS have passed without a frame.
void sender_timeout(struct sender *s);
