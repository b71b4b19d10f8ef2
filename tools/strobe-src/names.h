// Interned strings: equal strings have the same number (from 0) and the same
// pointer.
#pragma once

#include <stdint.h>

// A zeroed struct is an empty set.
struct names {
    struct name {
        char *text;
        uint32_t next; // next in the same bucket: number + 1; 0: none
    } * list;
    uint32_t count, room;
    uint32_t *buckets;     // first name: number + 1; 0: none
    uint32_t bucket_count; // a power of two
};

// Returns the number of a string, adding it if needed. Lack of memory ends the
// program.
uint32_t names_add(struct names *n, const char *text);
// The same, but returns the stored string, which is valid until names_free.
const char *names_keep(struct names *n, const char *text);
void names_free(struct names *n);
