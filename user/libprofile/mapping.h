// Where the code of a program's file lies in memory, and its build id: what a
// profile needs to find the file's symbols again elsewhere.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
    uint32_t address, size, file_offset; // of the code, in whole pages
    uint8_t build_id[20];
    uint32_t build_id_size; // 0: it has none
};

// From the bytes of an ELF program for i386, which are not trusted. False: it
// is none, or has no code.
bool mapping_find(struct mapping *m, const void *bytes, size_t size);
// Whether this is its build id; size 0: whether it has none.
bool mapping_has_id(const struct mapping *m, const void *id, uint32_t size);
// The same as mapping_find from a file.
bool mapping_read(struct mapping *m, const char *path);
