// The receiving side of a transfer (transfer.h): it only ever answers, so it
// needs no clock. Nothing that the sender says is believed.
#pragma once

#include "user/libtransfer/frame.h"
#include "user/libtransfer/store.h"

struct receiver {
    // Set by the user: where answers go, who is told of files, and where they
    // are kept (store.directory; store.part is -1).
    void (*put)(void *line, const uint8_t *frame, size_t size);
    void *line;
    void (*began)(void *user, const struct receiver *r); // NULL: nobody
    void (*ended)(void *user, const struct receiver *r); // problem or ""
    void *user;
    struct store store;

    enum { RECEIVER_IDLE, RECEIVER_TAKES, RECEIVER_HAS } state;
    uint32_t id; // of the file, valid unless idle
    uint64_t size, received;
    uint64_t resumed; // where this run began
    uint32_t crc_wanted, crc;
    char problem[TRANSFER_TEXT_MAX]; // why it was refused
};

// A frame has come.
void receiver_take(void *receiver, const struct frame *f);
