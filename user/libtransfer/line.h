// A serial line for frames: 115200 bit/s, 8N1, no flow control, raw, and
// exclusively locked while it is open.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct line {
    int fd;
    int error; // errno of a failed line, else 0
};

// Returns 0, or -1 and sets errno. ENOTTY: not a terminal; EWOULDBLOCK: in use.
int line_open(struct line *l, const char *path);

// Reads available bytes, waiting up to `timeout_ms` for the first. Returns 0 on
// a time-out, -1 when the line has failed (l->error).
int line_read(struct line *l, void *buf, size_t size, int timeout_ms);

// Writes a frame. Bytes that the line does not accept within a few seconds are
// lost, like bytes lost on the line. For sender.put and receiver.put.
void line_put(void *line, const uint8_t *frame, size_t size);
