// Encoder for protocol buffers (protobuf.dev, "Encoding"). Messages are built
// in memory. Lack of memory ends the program.
#pragma once

#include <stddef.h>
#include <stdint.h>

// A zeroed struct is an empty message.
struct message {
    uint8_t *bytes;
    size_t size, room;
};

// Appends a number. 0, which is the default of readers, is left out.
void message_number(struct message *m, uint32_t field, uint64_t number);
// The same, for readers that tell 0 from a field that is missing.
void message_value(struct message *m, uint32_t field, uint64_t number);
// The same, of 8 bytes (fixed64).
void message_fixed(struct message *m, uint32_t field, uint64_t number);
void message_text(struct message *m, uint32_t field, const char *text);
// Appends bytes or a string.
void message_bytes(struct message *m, uint32_t field, const void *bytes,
                   size_t size);
// Appends a message, and empties `part`.
void message_add(struct message *m, uint32_t field, struct message *part);
// Appends an element to a packed list of numbers. message_add appends the list.
void message_element(struct message *list, uint64_t number);
void message_free(struct message *m);
