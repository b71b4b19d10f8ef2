// Stores received files in one directory, whatever names the sender gives, and
// never overwrites another file.
//
// An incomplete file is called .NAME.ID.part, so that it is found when the same
// file is announced again. If the name is used by another file, the new one
// becomes NAME.2, NAME.3 and so on. If a file of this name with the same
// contents exists, it is left unchanged.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/libtransfer/transfer.h"

struct store {
    int directory; // set by the user
    int part;      // -1: no file is open
    char name[TRANSFER_NAME_MAX + 1];
    char placed[TRANSFER_NAME_MAX + 16];    // the final name
    char part_name[TRANSFER_NAME_MAX + 32]; // while the file is incomplete
};

// Returns why a file cannot have this name, or NULL if it can.
const char *store_name_problem(const char *name, size_t length);

// Opens the part of a file, or creates it. The name must be valid. Sets the
// part's size and checksum. Returns -1 and sets errno on failure.
int store_open(struct store *s, const char *name, uint32_t id,
               uint64_t *received, uint32_t *crc);
int store_append(struct store *s, uint64_t offset, const void *data,
                 size_t size);
// Whether a complete file of this name, size and contents exists.
bool store_has(struct store *s, const char *name, uint64_t size, uint32_t crc);
// The open part is invalid: truncates it to 0 bytes.
int store_empty(struct store *s);
// The open file is complete: gives it its final name. Returns -1 and sets errno
// on failure.
int store_finish(struct store *s, uint64_t size, uint32_t crc);
// Closes the open part, if any, without a change.
void store_close(struct store *s);
