// The measured machine's side of a session (message.h), independent of clock
// and network. `now` is a time in milliseconds.
//
// The user reads what a program writes into the room of a channel; this cuts it
// into datagrams, which each hold an LZ4 block of their own, and keeps the last
// REMOTE_WINDOW to send them again. A client that misses more than that loses
// them; except for those before the first sample, without which a file cannot
// be read: there is no room until they have come.
#pragma once

#include "user/libremote/message.h"
#include "user/libremote/records.h"

enum remote_event {
    REMOTE_NOTHING,
    REMOTE_REJECTED, // malformed, or not made with the key: not answered
    REMOTE_HEARD,    // from the session's client
    REMOTE_BEGIN,    // likewise: start `kind` with `words`
    REMOTE_STOP,     // likewise: stop it
};

struct remote_channel_raw {
    uint8_t bytes[REMOTE_RAW_MAX];
    size_t used;
    uint64_t offset; // of bytes[0] in the channel
};

struct remote_slot {
    uint64_t sent_ms;
    uint16_t size;
    bool come;
    uint8_t bytes[REMOTE_DATAGRAM_MAX];
};

struct remote_server {
    // Set by the user. `send` with `client`: to the client of the session; else
    // to the sender of the datagram that is being taken.
    uint8_t key[SIPHASH_KEY];
    void (*send)(void *arg, bool client, const void *datagram, size_t size);
    void (*random)(void *arg, void *bytes, size_t size);
    void *arg;
    uint32_t resend_ms; // not again before
    // Datagrams ahead of those that have come; more wait, and none are lost.
    // For a slow line. 0: any number.
    uint32_t ahead_max;

    enum { REMOTE_IDLE, REMOTE_RUNNING, REMOTE_ENDING } state;
    uint64_t next_session; // 0: none was drawn yet
    uint64_t session, nonce;
    uint8_t kind; // enum remote_kind
    char words[REMOTE_REQUEST_MAX];
    size_t words_size;
    uint32_t counter; // of the last REPORT
    uint64_t heard_ms, said_ms, began_ms;
    struct remote_channel_raw channels[REMOTE_END];
    struct records records;
    uint32_t number;    // of the next datagram
    uint32_t acked;     // the client has all before, or has given them up
    uint32_t protected; // not to be forgotten before they have come
    uint64_t resent, raw_bytes, sent_bytes;
    struct remote_slot slots[REMOTE_WINDOW];
};

enum remote_event remote_server_take(struct remote_server *s,
                                     const void *datagram, size_t size,
                                     uint64_t now);
// Ends a session whose client has vanished. Returns whether it did.
bool remote_server_tick(struct remote_server *s, uint64_t now);

// Where the next bytes of a channel go, and how many of them fit, possibly 0.
uint8_t *remote_server_room(struct remote_server *s,
                            enum remote_channel channel, size_t *room);
// So many bytes were put there. Whole datagrams are sent.
void remote_server_added(struct remote_server *s, enum remote_channel channel,
                         size_t size, uint64_t now);
// Sends the rest. Returns false if that must wait for the client.
bool remote_server_flush(struct remote_server *s, uint64_t now);
// The program has ended and all was flushed: sends `end`, whose fields but the
// costs and the status are filled in here.
void remote_server_end(struct remote_server *s, struct remote_end *end,
                       uint64_t now);
