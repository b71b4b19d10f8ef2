// The datagrams of `strobe remote`, which drives a profiling session of another
// machine over a network or a serial line. docs/off-machine.md describes the
// protocol. Integers are little endian; each datagram ends with the SipHash of
// all before, by the key that the measured machine showed on its console.
//
//     client                                              server
//     HELLO (its nonce)              ->
//                                    <-  CHALLENGE (the next session's number)
//     START (session, request)       ->
//                                    <-  STARTED (session), or REFUSED (why)
//                                    <-  DATA 0, 1, 2, ...
//     REPORT (what has come; stop)   ->
//                                    <-  DATA of the channel END
//
// A session's number is random and used once, so that a recorded START begins
// nothing. HELLO is as long as the longest answer to it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/libremote/siphash.h"

#define REMOTE_PORT 7876
#define REMOTE_DATAGRAM_MAX 1400 // with its code
#define REMOTE_CODE 8            // bytes of it
#define REMOTE_WINDOW 256        // datagrams that the server can send again
#define REMOTE_REPORTED 256      // of these, in one REPORT
#define REMOTE_RAW_MAX 16384     // bytes of a channel in one datagram
#define REMOTE_TEXT_MAX 100      // of REFUSED
#define REMOTE_REQUEST_MAX 1024  // words of a request, each with its NUL
#define REMOTE_COUNTERS 17 // records that are no samples, samples by event
// The server ends a session whose client has been silent for so long; the
// client gives up likewise.
#define REMOTE_SILENCE_MS 5000
// A frame on a serial line (libtransfer/frame.h) has this type.
#define REMOTE_FRAME 'r'

enum remote_type {
    REMOTE_HELLO = 'h',
    REMOTE_CHALLENGE = 'c',
    REMOTE_START = 's',
    REMOTE_STARTED = 'a',
    REMOTE_REFUSED = 'x',
    REMOTE_REPORT = 'r',
    REMOTE_DATA = 'd',
};

enum remote_kind {
    REMOTE_RECORD = 1, // sprofile with these arguments; its file is channel 0
    REMOTE_TOP,        // top -b with these arguments
};

enum remote_channel {
    REMOTE_FILE, // records of perf.data
    REMOTE_TEXT, // what the program prints
    REMOTE_END,  // struct remote_end; the last datagram
    REMOTE_CHANNELS,
};

struct remote_head {
    char magic[2];
    uint8_t version, type;
    // HELLO, CHALLENGE, REFUSED: the client's nonce. Others: the session.
    uint64_t session;
} __attribute__((packed));
#define REMOTE_MAGIC "SR"
#define REMOTE_VERSION 1

struct remote_hello {
    struct remote_head head;
    uint8_t padding[REMOTE_TEXT_MAX];
} __attribute__((packed));

struct remote_challenge {
    struct remote_head head;
    uint64_t next; // the number of the next session
} __attribute__((packed));

struct remote_start {
    struct remote_head head;
    uint64_t nonce;
    uint8_t kind;
    char words[]; // each ends with a NUL
} __attribute__((packed));

struct remote_started {
    struct remote_head head;
    uint64_t nonce;
} __attribute__((packed));

struct remote_refused {
    struct remote_head head;
    char text[];
} __attribute__((packed));

struct remote_report {
    struct remote_head head;
    uint32_t counter; // larger than that of the one before
    uint32_t next;    // all before it have come, or are given up
    uint8_t stop;
    uint8_t come[REMOTE_REPORTED / 8]; // bit n: `next` + n has come
} __attribute__((packed));

// A piece of a channel. A reader that misses the piece before it goes on at the
// first record that begins here.
struct remote_data {
    struct remote_head head;
    uint32_t number;   // of the datagram: 0, 1, 2, ...
    uint32_t oldest;   // the server has forgotten those before
    uint64_t offset;   // of the piece in its channel
    uint16_t raw_size; // of the piece
    uint16_t first;    // where its first record begins; REMOTE_NONE: nowhere
    uint8_t channel;
    uint8_t packed;   // 1: an LZ4 block; 0: the piece itself
    uint8_t counters; // that follow: records that ended before `first`
    uint8_t reserved;
} __attribute__((packed));
#define REMOTE_NONE UINT16_MAX

// What sending has cost the measured machine, and what there was to send.
struct remote_end {
    uint64_t status;                   // of the program, as a shell has it
    uint64_t size[REMOTE_END];         // of the channels
    uint64_t counted[REMOTE_COUNTERS]; // records
    uint64_t datagrams, resent;        // without and with the last one
    uint64_t raw_bytes, sent_bytes;    // of the first; of all datagrams
    uint64_t program_ns, net_ns;       // CPU time of `remote`, of `net`
    uint64_t elapsed_ns;
};

// Writes the head. `session` as in struct remote_head.
void remote_head_make(void *datagram, enum remote_type type, uint64_t session);
// Appends the code to a datagram of `size` bytes. Returns the whole size.
size_t remote_seal(const uint8_t key[SIPHASH_KEY], void *datagram, size_t size);
// Returns the size without the code, or 0 if this is no datagram made with the
// key.
size_t remote_check(const uint8_t key[SIPHASH_KEY], const void *datagram,
                    size_t size);

// A key as text: hexadecimal digits in groups, and back. Parsing ignores
// hyphens; false: it is no key.
#define REMOTE_KEY_TEXT 40
void remote_key_print(char text[REMOTE_KEY_TEXT],
                      const uint8_t key[SIPHASH_KEY]);
bool remote_key_parse(uint8_t key[SIPHASH_KEY], const char *text);
