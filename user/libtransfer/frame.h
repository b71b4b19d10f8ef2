// Frames: what goes over the second serial port, a line that may lose, change
// and repeat bytes. Integers are little-endian:
//
//     "\xf5S"  type (1 byte)  length (2)  payload  CRC-32 of type..payload (4)
//
// Capital types are init's for tools/vm (user/init/command.c), small ones those
// of a file transfer (transfer.h).
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

// Writes the frame of a payload of at most FRAME_PAYLOAD_MAX bytes. Returns how
// long it is.
size_t frame_encode(uint8_t out[FRAME_MAX], char type, const void *payload,
                    size_t size);

// What has come of frames so far. Begins zeroed.
struct frame_reader {
    uint8_t bytes[FRAME_MAX];
    size_t used;
};

// Takes what has come from the line and gives each frame whose checksum is
// right to `take`, in order; the payload is there only while it runs. The rest
// is passed over.
void frame_feed(struct frame_reader *r, const void *data, size_t size,
                void (*take)(void *to, const struct frame *f), void *to);

// Nothing has come for a while: what began as a frame is taken for none, and
// what followed it is looked at again.
void frame_idle(struct frame_reader *r,
                void (*take)(void *to, const struct frame *f), void *to);

// Little-endian numbers of `size` bytes.
void frame_put_number(uint8_t *to, uint64_t value, int size);
uint64_t frame_number(const uint8_t *from, int size);
