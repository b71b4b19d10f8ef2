// Where the code of a program's file lies in memory, and its build id: what a
// profile must record so that the file's symbols can be found later on another
// machine.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
    uint32_t address, size, file_offset; // of the code, in whole pages
    uint8_t build_id[20];
    uint32_t build_id_size; // 0: it has no build id
};

// Reads the mapping from the bytes of an ELF program for i386, which are not
// trusted. Returns false if they are not such a program, or it has no code.
bool mapping_find(struct mapping *m, const void *bytes, size_t size);
// Whether the build id is `id`. With size 0: whether there is no build id.
bool mapping_has_id(const struct mapping *m, const void *id, uint32_t size);
// The same as mapping_find, from a file.
bool mapping_read(struct mapping *m, const char *path);
