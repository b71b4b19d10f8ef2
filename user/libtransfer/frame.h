// Frames for the second serial port, a line that may lose, corrupt and
// duplicate bytes. Integers are little-endian:
//
//     "\xf5S"  type (1 byte)  length (2)  payload  CRC-32 of type..payload (4)
//
// Upper-case types are those that init sends to tools/vm (user/init/command.c),
// lower-case types those of a file transfer (transfer.h).
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FRAME_PAYLOAD_MAX 4096
#define FRAME_HEAD 5
#define FRAME_TAIL 4
#define FRAME_MAX (FRAME_HEAD + FRAME_PAYLOAD_MAX + FRAME_TAIL)

struct frame {
    char type;
    const uint8_t *payload;
    size_t size;
};

// Writes the frame of a payload of at most FRAME_PAYLOAD_MAX bytes. Returns the
// frame's length.
size_t frame_encode(uint8_t out[FRAME_MAX], char type, const void *payload,
                    size_t size);

// The received bytes of incomplete frames. Initially zeroed.
struct frame_reader {
    uint8_t bytes[FRAME_MAX];
    size_t used;
};

// Takes received bytes, and passes each frame with a right checksum to `take`,
// in order. The payload is valid only during the call. Other bytes are
// discarded.
void frame_feed(struct frame_reader *r, const void *data, size_t size,
                void (*take)(void *to, const struct frame *f), void *to);

// To be called when no byte was received for a while: the incomplete frame is
// discarded, and the bytes after its beginning are searched for frames.
void frame_idle(struct frame_reader *r,
                void (*take)(void *to, const struct frame *f), void *to);

// Little-endian numbers of `size` bytes.
void frame_put_number(uint8_t *to, uint64_t value, int size);
uint64_t frame_number(const uint8_t *from, int size);
