// Texts, each kept once, with a number from 0 on: the same text has the same
// number and the same pointer.
#pragma once

#include <stdint.h>

// Zeroed: none.
struct names {
    struct name {
        char *text;
        uint32_t next; // in its bucket: its number plus 1; 0: none
    } * list;
    uint32_t count, room;
    uint32_t *buckets; // a power of two
    uint32_t bucket_count;
};

// The number of a text. No memory ends the program.
uint32_t names_add(struct names *n, const char *text);
// The text itself, which stays until names_free.
const char *names_keep(struct names *n, const char *text);
void names_free(struct names *n);
