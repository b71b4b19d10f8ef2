#include "protobuf.h"

#include "user/libstrobe/strobe.h"

#include <stdlib.h>
#include <string.h>

#define VARINT 0u // wire types
#define FIXED64 1u
#define LENGTH 2u

static void append(struct message *m, const void *bytes, size_t size)
{
    if (size > m->room - m->size) {
        size_t room = (m->room + size) * 2;
        uint8_t *more = realloc(m->bytes, room);
        if (!more)
            fail(1, "not enough memory for the export");
        m->bytes = more;
        m->room = room;
    }
    if (size > 0)
        memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

void message_element(struct message *list, uint64_t number)
{
    uint8_t bytes[10];
    size_t size = 0;

    for (; number >= 0x80; number >>= 7)
        bytes[size++] = (uint8_t)(number | 0x80);
    bytes[size++] = (uint8_t)number;
    append(list, bytes, size);
}

void message_value(struct message *m, uint32_t field, uint64_t number)
{
    message_element(m, field << 3 | VARINT);
    message_element(m, number);
}

void message_number(struct message *m, uint32_t field, uint64_t number)
{
    if (number)
        message_value(m, field, number);
}

void message_fixed(struct message *m, uint32_t field, uint64_t number)
{
    uint8_t bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    message_element(m, field << 3 | FIXED64);
    append(m, bytes, sizeof(bytes));
}

void message_text(struct message *m, uint32_t field, const char *text)
{
    message_bytes(m, field, text, strlen(text));
}

void message_bytes(struct message *m, uint32_t field, const void *bytes,
                   size_t size)
{
    message_element(m, field << 3 | LENGTH);
    message_element(m, size);
    append(m, bytes, size);
}

void message_add(struct message *m, uint32_t field, struct message *part)
{
    message_bytes(m, field, part->bytes, part->size);
    part->size = 0;
}

void message_free(struct message *m)
{
    free(m->bytes);
    *m = (struct message){ 0 };
}
