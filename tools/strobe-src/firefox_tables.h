// The tables of a thread in Firefox Profiler's processed profile format
// (github.com/firefox-devtools/profiler, src/types/profile.ts, version 57):
// stacks, and the frames, functions, symbols and resources that they need; and
// what all threads share, the strings and libraries.
#pragma once

#include "export.h"
#include "lines.h"
#include "numbering.h"
#include "places.h"

enum firefox_category {
    CATEGORY_USER,
    CATEGORY_KERNEL,
    CATEGORY_IDLE,
    CATEGORY_OTHER,
    CATEGORIES
};

struct firefox_tables {
    struct export *e;
    struct lines *lines;
    struct places places;
    struct names strings;
    uint32_t *function_of;   // of each row of the view: a function's number in
    uint32_t *function_row;  // all threads; a row of each of these
    uint32_t function_count; // (behind the last one: idle)
    struct numbering libs;   // images
    // Of the thread:
    bool idle;                  // a CPU's idle time
    struct numbering stacks;    // nodes of chains
    struct numbering frames;    // places (behind the last one: idle)
    struct numbering functions; // in all threads
    struct numbering symbols;   // rows
    struct numbering resources; // images
    uint32_t *frame_node;       // a node of each frame
};

// No memory ends the program.
void firefox_tables_init(struct firefox_tables *t, struct export *e);
void firefox_tables_free(struct firefox_tables *t);
// Forgets the last thread's.
void firefox_tables_begin(struct firefox_tables *t, bool idle);
#define FIREFOX_NO_STACK (-1)
// The number of a chain's stack.
int64_t firefox_stack(struct firefox_tables *t, uint32_t chain);
// The number of a text, which is made printable.
uint32_t firefox_string(struct firefox_tables *t, const char *text);
// The row of the function that has a node's code, whatever is inlined there.
uint32_t firefox_code_row(const struct firefox_tables *t, uint32_t node);
// What is inlined at a node, or NULL.
const struct inlined *firefox_inlined(const struct firefox_tables *t,
                                      uint32_t node);
// The number of a node's frame.
int64_t firefox_frame(const struct firefox_tables *t, uint32_t node);
// Whether an image is a file's.
static inline bool firefox_has_file(uint32_t image)
{
    return image != IMAGE_UNKNOWN && image != IMAGE_CUT;
}
// A row's function; without the mark if it is inlined, as its frames tell that.
#define FIREFOX_NAME 512
void firefox_name(const struct firefox_tables *t, uint32_t row,
                  char name[FIREFOX_NAME]);

// --- firefox_columns.c, firefox_shared.c -------------------------------------

// Members of the thread's object, and those of the whole one, each with a comma
// before it.
void firefox_tables_write(struct firefox_tables *t, FILE *out);
void firefox_shared_write(struct firefox_tables *t, FILE *out);
// A column of a table, with a comma behind it. FIREFOX_NULL is null.
#define FIREFOX_NULL INT64_MIN
void firefox_column(struct firefox_tables *t, FILE *out, const char *name,
                    uint32_t count,
                    int64_t (*value)(struct firefox_tables *t, uint32_t i));
void firefox_same(FILE *out, const char *name, uint32_t count,
                  const char *value);

// --- firefox_meta.c
// -----------------------------------------------------------

// The first members of the whole object.
void firefox_meta_write(const struct export *e);
