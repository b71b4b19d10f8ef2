// Images: the files that the sampled code comes from, each once, with its
// symbols and call frame information, loaded when first asked for.
//
// A file is known by its path and build id: two tasks that run the same share
// its image, a file that was replaced meanwhile is another one. What runs can
// be held from then on, so that its names are there also when it has been
// replaced or deleted.
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
    bool stripped;          // that is why
    int held;               // its file, open until it is loaded; -1: none
    uint32_t jit_task;      // code that this task has made; 0: a file's
    struct mapping mapping; // of its code, once it was asked for
                            // (perf_write.c, images_hold); else its size is 0
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

// Opens the file that a task runs, whatever lies at its path by now, if that
// path is this one: a descriptor, or -1.
typedef int (*image_opener)(uint32_t task, const char *path);

// Looks for the file of an image elsewhere than at its path, by its build id:
// its bytes, to be freed, or NULL and why there are none.
typedef void *(*image_finder)(void *arg, const struct image *m, size_t *size,
                              const char **problem);

struct images {
    image_reader read;
    image_finder find; // where not NULL, instead of `read`
    void *find_arg;
    image_opener open; // NULL: nothing is held
    struct image *list;
    uint32_t count, room, held;
    struct row_cache *rows; // of all of them; from images_rows on
};

// -1: no memory.
int images_init(struct images *i, image_reader read);
void images_free(struct images *i);
// The number of an image; IMAGE_UNKNOWN for an empty path, or without memory.
uint32_t images_add(struct images *i, const char *path, const void *build_id,
                    uint32_t build_id_size);
// `task` runs it: holds its file, so that it can be read later. Does nothing
// where that is not needed, or the task runs something else by now.
void images_hold(struct images *i, uint32_t image, uint32_t task);
// The same of a file that is open, which is the image's from then on.
void images_hold_open(struct images *i, uint32_t image, int fd);
// Closes what is held.
void images_let_go(struct images *i, struct image *m);
// The path by which the image's file is read: of what is held, if it is.
#define IMAGES_HELD_PATH 32
const char *images_held_path(const struct image *m,
                             char path[IMAGES_HELD_PATH]);
// Of code that the task has made itself, which lies in no file: named by what
// the task has written to /tmp/perf-TASK.map, as perf reads it.
uint32_t images_add_jit(struct images *i, uint32_t task);
// Frees what was read of its file.
void images_unload(struct image *m);
// Reads its file.
void images_read(struct images *i, struct image *m);
// With all that can be read of it. Stays until the next images_add.
static inline const struct image *images_load(struct images *i, uint32_t image)
{
    struct image *m = &i->list[image];
    if (!m->loaded)
        images_read(i, m);
    return m;
}

#define KERNEL_BASE 0xc0000000u
// The number of the kernel's first symbol: what it starts with, before it runs
// where it belongs, lies lower. The kernel has symbols.
static inline uint32_t images_kernel_start(const struct image *kernel)
{
    uint32_t first = 0;
    while (kernel->symbols.table[first].start < KERNEL_BASE &&
           first + 1 < kernel->symbols.count)
        first++;
    return first;
}
// The cache for rows of their call frame information: sizeof(struct row_cache)
// bytes, taken when it is first asked for. NULL: no memory.
struct row_cache *images_rows(struct images *i);
// The symbol around an address, or NULL.
const struct symbol *images_symbol(struct images *i, uint32_t image,
                                   uint32_t address);
