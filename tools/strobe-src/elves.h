// The ELF files of what was profiled, on this machine: found by build id, for a
// path alone does not tell which build it was.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/libprofile/images.h"

struct elf_file {
    char *path;
    uint8_t build_id[20];
    uint32_t build_id_size; // 0: it has none
    bool lines;             // it has line numbers (.debug_line)
};

struct elves {
    const char *kernel;  // the user's choice, or NULL
    const char *folders; // DIR:DIR..., before the build folder; or NULL
    char build[4096];    // the build folder: where this program lies
    char root[4096];     // what that is in: the sources
    struct elf_file *list;
    size_t count, room;
    char **messages; // that images point to
    size_t message_count;
};

// Lists the files there are.
void elves_init(struct elves *e, const char *kernel, const char *folders);
void elves_free(struct elves *e);
// The path of an image's file; NULL and, for the user, why there is none.
const char *elves_path(struct elves *e, const struct image *m,
                       const char **problem);
// Likewise its bytes: an image_finder, with `e` as its argument.
void *elves_read(void *e, const struct image *m, size_t *size,
                 const char **problem);

// A whole file, to be freed; NULL and errno. Not above 1 GiB.
void *file_read(const char *path, size_t *size);
// A whole file of any size, until file_unmap; NULL and errno.
const void *file_map(const char *path, size_t *size);
void file_unmap(const void *bytes, size_t size);
// A build id as text, "none" where there is none.
#define BUILD_ID_TEXT 41
const char *build_id_text(char out[BUILD_ID_TEXT], const uint8_t *id,
                          uint32_t size);
