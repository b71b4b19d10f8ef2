// The file of samples that come from another machine in pieces, some of which
// may be lost: whole records only, in their order. What is missing is counted,
// and is in the file as LOST records and in its header.
#pragma once

#include "user/libprofile/perf_format.h"
#include "user/libremote/client.h"
#include "user/libremote/records.h"

struct remote_info {
    uint64_t at, size; // of the last INFO of an event; size 0: there is none
};

struct remote_file {
    int fd;
    bool failed;     // a write failed
    uint64_t at;     // where the next byte goes
    uint64_t whole;  // end of the last whole record in the file
    uint64_t stream; // and in the channel
    uint64_t taken;  // bytes of the channel; all before have come or are lost
    uint64_t time;   // of the last sample, ns
    struct records records;
    uint64_t lost[REMOTE_COUNTERS]; // records
    uint64_t lost_bytes;
    struct remote_info info[PERF_EVENTS_MAX];
};

// `fd` is an empty file, open for reading and writing.
void remote_file_begin(struct remote_file *f, int fd);
// Takes the next piece of the channel REMOTE_FILE.
void remote_file_take(struct remote_file *f, const struct remote_piece *p);
// Completes the file, of what has come. `end` is NULL if the connection was
// lost. Returns NULL, or an error message.
const char *remote_file_end(struct remote_file *f, const struct remote_end *end,
                            const struct remote_client *c);
