// The receiving side of a transfer (transfer.h). It only answers frames, and so
// needs no clock. The sender is not trusted.
#pragma once

#include "user/libtransfer/frame.h"
#include "user/libtransfer/store.h"

struct receiver {
    // Set by the user: the output, the callbacks, and the directory for files
    // (store.directory; store.part is -1).
    void (*put)(void *line, const uint8_t *frame, size_t size);
    void *line;
    void (*began)(void *user, const struct receiver *r); // may be NULL
    void (*ended)(
        void *user,
        const struct receiver *r); // NULL, or called with `problem` set or ""
    void *user;
    struct store store;

    enum { RECEIVER_IDLE, RECEIVER_TAKES, RECEIVER_HAS } state;
    uint32_t id; // of the file, valid unless idle
    uint64_t size, received;
    uint64_t resumed; // offset at which this run began
    uint32_t crc_wanted, crc;
    char problem[TRANSFER_TEXT_MAX]; // why the file was refused
};

// Handles a received frame.
void receiver_take(void *receiver, const struct frame *f);
