// Images: the files that the sampled code comes from, each once, with its
// symbols and call frame information, loaded when first asked for.
//
// A file is known by its path and build id: two tasks that run the same share
// its image, a file that was replaced meanwhile is another one.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/row_cache.h"
#include "lib/symbols.h"
#include "mapping.h"

#define IMAGE_KERNEL 0u  // "[kernel]"
#define IMAGE_VDSO 1u    // "[vdso]", by offset in it
#define IMAGE_UNKNOWN 2u // "[unknown]": of a task that nobody told of
// Not code: where a chain is not whole, by enum chain_mark (lib/chain.h) minus
// 1, as callers are.
#define IMAGE_CUT 3u // "[cut]"
#define IMAGES_FIXED 4u

#define VDSO_BYTES 8192u // that the vDSO has at most

struct image {
    char *path;
    uint8_t build_id[20];
    uint32_t build_id_size;
    bool loaded;
    const char *problem;    // why it has no symbols; NULL: it has
    bool replaced;          // because there is another file now
    struct mapping mapping; // of its code, once it was asked for
                            // (perf_write.c); else its size is 0
    // Once loaded:
    void *bytes, *text; // text: of PATH.sym
    struct symbols symbols;
    struct cfi_program frames;
    uint32_t entry;                   // where it starts
    const uint8_t *code;              // of its first segment with code,
    uint32_t code_address, code_size; // which lies there; 0: none is known
    void *symbol_table, *frame_table;
};

// The bytes of a file, to be freed; NULL: it cannot be read. "[kernel]" may be
// text as `nm` prints it.
typedef void *(*image_reader)(const char *path, size_t *size);

// Looks for the file of an image elsewhere than at its path, by its build id:
// its bytes, to be freed, or NULL and why there are none.
typedef void *(*image_finder)(void *arg, const struct image *m, size_t *size,
                              const char **problem);

struct images {
    image_reader read;
    image_finder find; // where not NULL, instead of `read`
    void *find_arg;
    struct image *list;
    uint32_t count, room;
    struct row_cache *rows; // of all of them; from images_rows on
};

// -1: no memory.
int images_init(struct images *i, image_reader read);
void images_free(struct images *i);
// The number of an image; IMAGE_UNKNOWN for an empty path, or without memory.
uint32_t images_add(struct images *i, const char *path, const void *build_id,
                    uint32_t build_id_size);
// Reads its file.
void images_read(const struct images *i, struct image *m);
// With all that can be read of it. Stays until the next images_add.
static inline const struct image *images_load(struct images *i, uint32_t image)
{
    struct image *m = &i->list[image];
    if (!m->loaded)
        images_read(i, m);
    return m;
}
// The cache for rows of their call frame information: sizeof(struct row_cache)
// bytes, taken when it is first asked for. NULL: no memory.
struct row_cache *images_rows(struct images *i);
// The symbol around an address, or NULL.
const struct symbol *images_symbol(struct images *i, uint32_t image,
                                   uint32_t address);
