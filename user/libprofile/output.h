// Buffered sequential output to a new file, or to a pipe. Records are built in
// place in the buffer: a recorded sample is not copied again, and one system
// call writes many of them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_BYTES 65536u // size of the buffer

struct output {
    uint8_t *buffer; // NULL: closed
    uint32_t used;
    int fd;
    bool pipe;   // what was written cannot be changed
    bool failed; // a write failed; some data is missing
};

// Creates the file, open for reading and writing, or opens the pipe. Returns
// NULL, or the error message; then the output is closed.
const char *output_open(struct output *o, const char *path);
// Returns room for `size` bytes, at most OUTPUT_BYTES, after the data added so
// far. It is valid until the next call. Nothing is added until output_take.
void *output_room(struct output *o, uint32_t size);
// Adds the first `size` bytes of the room returned by output_room.
void output_take(struct output *o, uint32_t size);
void output_add(struct output *o, const void *bytes, uint32_t size);
// Writes the buffer to the file. On an error `failed` is set.
void output_flush(struct output *o);
// Closes the file and discards data that was not flushed.
void output_close(struct output *o);
