// Messages of protocol buffers (protobuf.dev, "Encoding"), put together in
// memory. No memory ends the program.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Zeroed: empty.
struct message {
    uint8_t *bytes;
    size_t size, room;
};

// A field with a number; of 0, which a reader takes for granted, none.
void message_number(struct message *m, uint32_t field, uint64_t number);
// A field with bytes or a text.
void message_bytes(struct message *m, uint32_t field, const void *bytes,
                   size_t size);
// A field with a message, which is then empty again.
void message_add(struct message *m, uint32_t field, struct message *part);
// An element of a field with many numbers, put together in `list` as another
// message's bytes ("packed").
void message_element(struct message *list, uint64_t number);
void message_free(struct message *m);
