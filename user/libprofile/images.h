// Images: the files that the sampled code comes from, each stored once, with
// its symbols and call frame information, which are loaded on first use.
//
// An image is identified by path and build id. Two tasks that run the same file
// share its image; a file that replaces another at the same path is a new
// image. The file of a running program can be held open, so that its symbols
// can be read after it was replaced or deleted.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapping.h"
#include "user/libread/row_cache.h"
#include "user/libread/symbols.h"

#define IMAGE_KERNEL 0u  // "[kernel]"
#define IMAGE_VDSO 1u    // "[vdso]"; addresses are offsets in it
#define IMAGE_UNKNOWN 2u // "[unknown]": of a task without a task record
// Not code: these mark incomplete chains, in the place of a caller. The number
// is IMAGE_CUT + enum chain_mark (user/libread/call_chain.h) - 1.
#define IMAGE_CUT 3u // "[cut]"
#define IMAGES_FIXED 4u

#define VDSO_BYTES 8192u // maximum size of the vDSO

struct image {
    char *path;
    uint8_t build_id[20];
    uint32_t build_id_size;
    bool loaded;
    const char *problem; // why it has no symbols; NULL: it has symbols
    bool stripped;       // `problem` is that the file is stripped
    int held;            // descriptor of its file, open until loaded; -1: none
    uint32_t jit_task;   // task that generated the code; 0: code of a file
    struct mapping mapping; // of its code, read on first use
                            // (perf_write.c, images_hold); before that, size 0
    // Valid once loaded:
    void *bytes, *text; // `text`: contents of PATH.sym
    struct symbols symbols;
    struct cfi_program frames;
    uint32_t entry;                   // the entry point
    const uint8_t *code;              // the first segment with code
    uint32_t code_address, code_size; // its address; size 0: unknown
    void *symbol_table, *frame_table;
    void *unpacked[CFI_SECTIONS]; // of compressed sections
};

// Reads a file. Returns its bytes, which the caller frees, or NULL if it cannot
// be read. "[kernel]" may be text as `nm` prints it.
typedef void *(*image_reader)(const char *path, size_t *size);

// Opens the executable of a running task, even if another file is now at its
// path, provided that the task's path is `path`. Returns a descriptor, or -1.
typedef int (*image_opener)(uint32_t task, const char *path);

// Finds the file of an image by its build id, elsewhere than at its path.
// Returns its bytes, which the caller frees, or NULL and the reason.
typedef void *(*image_finder)(void *arg, const struct image *m, size_t *size,
                              const char **problem);

struct images {
    image_reader read;
    image_finder find; // used instead of `read` unless NULL
    void *find_arg;
    image_opener open; // NULL: no file is held
    struct image *list;
    uint32_t count, room, held;
    struct row_cache *rows; // shared by all images; allocated by images_rows
};

// Returns -1 when out of memory.
int images_init(struct images *i, image_reader read);
void images_free(struct images *i);
// Returns the number of an image, adding it if needed. Returns IMAGE_UNKNOWN
// for an empty path or when out of memory.
uint32_t images_add(struct images *i, const char *path, const void *build_id,
                    uint32_t build_id_size);
// Holds the image's file, which `task` runs, so that it can be read later. Does
// nothing if that is not needed, or if the task now runs another program.
void images_hold(struct images *i, uint32_t image, uint32_t task);
// The same with an open file. The image takes ownership of `fd`.
void images_hold_open(struct images *i, uint32_t image, int fd);
// Closes the held file.
void images_release(struct images *i, struct image *m);
// Returns the path to read the image's file by: that of the held descriptor if
// there is one, else the image's path.
#define IMAGES_HELD_PATH 32
const char *images_held_path(const struct image *m,
                             char path[IMAGES_HELD_PATH]);
// Returns the number of an image for code that the task has generated (JIT),
// which is in no file. Its symbols are those that the task has written to
// /tmp/perf-TASK.map, in the format that perf reads.
uint32_t images_add_jit(struct images *i, uint32_t task);
// Frees all that was read from its file.
void images_unload(struct image *m);
// Reads its file.
void images_read(struct images *i, struct image *m);
// Returns the image, loading it first if needed. The pointer is valid until the
// next images_add.
static inline const struct image *images_load(struct images *i, uint32_t image)
{
    struct image *m = &i->list[image];
    if (!m->loaded)
        images_read(i, m);
    return m;
}

#define KERNEL_BASE 0xc0000000u
// Returns the number of the kernel's first symbol at or above KERNEL_BASE. The
// start-up code that runs before paging is on has lower addresses. The kernel
// image must have symbols.
static inline uint32_t images_kernel_start(const struct image *kernel)
{
    uint32_t first = 0;
    while (kernel->symbols.table[first].start < KERNEL_BASE &&
           first + 1 < kernel->symbols.count)
        first++;
    return first;
}
// Returns the cache for rows of call frame information, of sizeof(struct
// row_cache) bytes, allocated on first use. NULL when out of memory.
struct row_cache *images_rows(struct images *i);
// Returns the symbol that contains an address, or NULL.
const struct symbol *images_symbol(struct images *i, uint32_t image,
                                   uint32_t address);
