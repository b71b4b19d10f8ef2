// The developer's side of a session (message.h), independent of clock and
// network. `now` is a time in milliseconds.
#pragma once

#include "user/libremote/message.h"

// A piece of a channel, delivered in order. What is missing between two pieces
// is lost.
struct remote_piece {
    uint8_t channel;
    uint64_t offset;      // in its channel
    const uint8_t *bytes; // valid during the call
    size_t size;
    uint16_t first;   // where its first record begins, or REMOTE_NONE
    uint8_t counters; // that are known
    uint64_t counted[REMOTE_COUNTERS]; // records that ended before `first`
};

struct remote_client {
    // Set by the user.
    uint8_t key[SIPHASH_KEY];
    uint64_t nonce; // random
    uint8_t kind;   // enum remote_kind
    char words[REMOTE_REQUEST_MAX];
    size_t words_size;
    uint32_t report_ms; // between two REPORTs
    void (*send)(void *arg, const void *datagram, size_t size);
    void (*take)(void *arg, const struct remote_piece *piece);
    void *arg;

    enum {
        REMOTE_ASKS,
        REMOTE_STARTS,
        REMOTE_GETS,
        REMOTE_ENDED,  // `end` is known
        REMOTE_DENIED, // `why`
        REMOTE_SILENT, // no answer
    } state;
    uint64_t session;
    uint64_t began_ms; // of waiting for an answer; 0: has not begun
    uint64_t heard_ms, said_ms;
    uint32_t counter, tries;
    bool stop; // asked
    uint32_t next, oldest;
    uint64_t come, twice, lost; // datagrams of the session
    uint64_t bytes;             // of those that came
    uint64_t rejected;          // malformed, or of another key
    uint64_t corrupt;           // of the right key, but wrong
    struct remote_end end;
    char why[REMOTE_TEXT_MAX + 1];
    struct remote_kept {
        uint16_t size; // 0: has not come
        uint8_t bytes[REMOTE_DATAGRAM_MAX];
    } kept[REMOTE_WINDOW];
    uint8_t raw[REMOTE_RAW_MAX];
};

void remote_client_take(struct remote_client *c, const void *datagram,
                        size_t size, uint64_t now);
// To be called every `report_ms`, or more often: sends what is due.
void remote_client_tick(struct remote_client *c, uint64_t now);
// Asks for the end of the session.
void remote_client_stop(struct remote_client *c, uint64_t now);
