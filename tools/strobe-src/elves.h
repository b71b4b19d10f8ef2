// Finds the ELF files of profiled programs on this machine. A file is found by
// its build id, as a path does not identify a build.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/libprofile/images.h"

struct elf_file {
    char *path;
    uint8_t build_id[20];
    uint32_t build_id_size; // 0: no build id
    bool lines;             // has line numbers (.debug_line)
};

struct elves {
    const char *kernel;  // file from option -k, or NULL
    const char *folders; // DIR:DIR..., before the build folder; or NULL
    char build[4096];    // the build folder, which contains this program
    char root[4096];     // its parent, the root of the sources
    struct elf_file *list;
    size_t count, room;
    char **messages; // allocated messages, to which images point
    size_t message_count;
};

// Lists the ELF files in `folders`, then in the build folder.
void elves_init(struct elves *e, const char *kernel, const char *folders);
void elves_free(struct elves *e);
// Returns the path of an image's file, or NULL and the reason for the user.
const char *elves_path(struct elves *e, const struct image *m,
                       const char **problem);
// The same, but returns the file's bytes. This is an image_finder with the
// struct elves as argument.
void *elves_read(void *e, const struct image *m, size_t *size,
                 const char **problem);

// Reads a file of at most 1 GiB. Returns its bytes, which the caller frees, or
// NULL and errno.
void *file_read(const char *path, size_t *size);
// Maps a file of any size; unmap it with file_unmap. Returns NULL and errno if
// that fails.
const void *file_map(const char *path, size_t *size);
void file_unmap(const void *bytes, size_t size);
// Formats a build id; "none" if its size is 0.
#define BUILD_ID_TEXT 41
const char *build_id_text(char out[BUILD_ID_TEXT], const uint8_t *id,
                          uint32_t size);
