// A serial line for frames: 115200 bit/s, 8N1, no flow control, nothing
// translated, and nobody else's while it is open.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct line {
    int fd;
    int error; // the errno of a line that is gone, else 0
};

// Returns -1 and errno: ENOTTY is no terminal, EWOULDBLOCK one that is in use.
int line_open(struct line *l, const char *path);

// Reads what there is, waiting up to `timeout_ms` for something. Returns 0 when
// nothing came, -1 when the line is gone (l->error).
int line_read(struct line *l, void *buf, size_t size, int timeout_ms);

// Writes a frame; what the line does not take within a few seconds is lost, as
// on the way it may be. For sender.put and receiver.put.
void line_put(void *line, const uint8_t *frame, size_t size);
