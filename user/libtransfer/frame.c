// Encodes and decodes frames. The reader buffers bytes from the first that may
// begin a frame. After a wrong checksum or an invalid length it advances by one
// byte only, because the length itself may be corrupt.
#include "user/libtransfer/frame.h"

#include <stdbool.h>
#include <string.h>

#include "lib/crc32.h"

#define MAGIC_0 0xf5
#define MAGIC_1 'S'

enum { TYPE = 2, LENGTH = 3 }; // offsets in a frame

void frame_put_number(uint8_t *to, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

uint64_t frame_number(const uint8_t *from, int size)
{
    uint64_t value = 0;

    for (int i = 0; i < size; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

size_t frame_encode(uint8_t out[FRAME_MAX], char type, const void *payload,
                    size_t size)
{
    out[0] = MAGIC_0;
    out[1] = MAGIC_1;
    out[TYPE] = (uint8_t)type;
    frame_put_number(out + LENGTH, size, 2);
    if (size > 0)
        memcpy(out + FRAME_HEAD, payload, size);
    frame_put_number(out + FRAME_HEAD + size,
                     crc32(0, out + TYPE, FRAME_HEAD - TYPE + size), 4);
    return FRAME_HEAD + size + FRAME_TAIL;
}

static void drop(struct frame_reader *r, size_t count)
{
    r->used -= count;
    memmove(r->bytes, r->bytes + count, r->used);
}

// Discards bytes up to the next possible beginning of a frame, searching from
// byte `from` on.
static void seek(struct frame_reader *r, size_t from)
{
    for (; from < r->used; from++) {
        if (r->bytes[from] != MAGIC_0)
            continue;
        if (from + 1 == r->used || r->bytes[from + 1] == MAGIC_1)
            break;
    }
    drop(r, from);
}

// Removes the frame at the beginning of the buffer, and passes it to `take` if
// its checksum is right. Returns false if the frame is incomplete.
static bool take_one(struct frame_reader *r,
                     void (*take)(void *to, const struct frame *f), void *to)
{
    struct frame f;
    size_t whole;

    seek(r, 0);
    if (r->used < FRAME_HEAD)
        return false;
    f.type = (char)r->bytes[TYPE];
    f.payload = r->bytes + FRAME_HEAD;
    f.size = frame_number(r->bytes + LENGTH, 2);
    whole = FRAME_HEAD + f.size + FRAME_TAIL;
    if (f.size <= FRAME_PAYLOAD_MAX && r->used < whole)
        return false;
    if (f.size > FRAME_PAYLOAD_MAX ||
        crc32(0, r->bytes + TYPE, FRAME_HEAD - TYPE + f.size) !=
            frame_number(f.payload + f.size, 4)) {
        seek(r, 1);
        return true;
    }
    take(to, &f);
    drop(r, whole);
    return true;
}

void frame_feed(struct frame_reader *r, const void *data, size_t size,
                void (*take)(void *to, const struct frame *f), void *to)
{
    const uint8_t *next = data;

    while (size > 0) {
        size_t room = sizeof(r->bytes) - r->used;
        size_t count = size < room ? size : room;

        memcpy(r->bytes + r->used, next, count);
        r->used += count;
        next += count;
        size -= count;
        while (take_one(r, take, to))
            ;
    }
}

void frame_idle(struct frame_reader *r,
                void (*take)(void *to, const struct frame *f), void *to)
{
    while (r->used > 0) {
        seek(r, 1);
        while (take_one(r, take, to))
            ;
    }
}
