// A file that is written to from its beginning on, by way of a buffer in which
// records can be put together: a recorded sample is not copied once more, and
// many of them are written by one system call.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_BYTES 65536u // of the buffer

struct output {
    uint8_t *buffer; // NULL: it is closed
    uint32_t used;
    int fd;
    bool failed; // some of it could not be written
};

// Creates the file, for reading, too. NULL, or what went wrong; then it is
// closed.
const char *output_open(struct output *o, const char *path);
// Room for `size` bytes, at most OUTPUT_BYTES, behind what was added; nothing
// is added yet. It is there until the next call.
void *output_room(struct output *o, uint32_t size);
// Adds the first `size` bytes of that room.
void output_take(struct output *o, uint32_t size);
void output_add(struct output *o, const void *bytes, uint32_t size);
// What was added is in the file when this returns, or `failed` is set.
void output_flush(struct output *o);
// Without what was not flushed.
void output_close(struct output *o);
