// Where received files go: into one directory, whatever the sender calls them,
// and never over another file.
//
// A file that is not complete is called .NAME.ID.part, so that it is found
// again when the same file is announced again. A file whose name is taken by
// another one becomes NAME.2, NAME.3 and so on; one that is there already, with
// the same contents, is left as it is.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/libtransfer/transfer.h"

struct store {
    int directory; // set by the user
    int part;      // -1: no file is open
    char name[TRANSFER_NAME_MAX + 1];
    char placed[TRANSFER_NAME_MAX + 16];    // what it is called in the end
    char part_name[TRANSFER_NAME_MAX + 32]; // while it is not complete
};

// Why a file cannot be called so, or NULL.
const char *store_name_problem(const char *name, size_t length);

// Opens the part of a file whose name is right, or a new one. Sets how much of
// it is there and that part's checksum. -1 and errno.
int store_open(struct store *s, const char *name, uint32_t id,
               uint64_t *received, uint32_t *crc);
int store_append(struct store *s, uint64_t offset, const void *data,
                 size_t size);
// Whether a complete file of that name, size and contents is there.
bool store_has(struct store *s, const char *name, uint64_t size, uint32_t crc);
// What is there of the open file is wrong: begin it anew.
int store_empty(struct store *s);
// The open file is complete: gives it its name. -1 and errno.
int store_finish(struct store *s, uint64_t size, uint32_t crc);
// Leaves the open file, if any, as it is.
void store_close(struct store *s);
