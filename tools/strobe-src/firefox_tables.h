// The tables of a thread in Firefox Profiler's processed profile format
// (github.com/firefox-devtools/profiler, src/types/profile.ts, version 57):
// stacks, and the frames, functions, symbols and resources that they refer to.
// Strings and libraries are shared by all threads.
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
    uint32_t *function_of;   // function of each row of the view
    uint32_t *function_row;  // a row of each function
    uint32_t function_count; // of all threads; this number is idle
    struct numbering libs;   // keys: images
    // For the current thread:
    bool idle;                  // it is an idle CPU
    struct numbering stacks;    // keys: chain nodes
    struct numbering frames;    // keys: places; their count is idle
    struct numbering functions; // keys: functions of all threads
    struct numbering symbols;   // keys: rows
    struct numbering resources; // keys: images
    uint32_t *frame_node;       // a node of each frame
};

// Lack of memory ends the program.
void firefox_tables_init(struct firefox_tables *t, struct export *e);
void firefox_tables_free(struct firefox_tables *t);
// Begins the tables of another thread.
void firefox_tables_begin(struct firefox_tables *t, bool idle);
#define FIREFOX_NO_STACK (-1)
// Returns the number of a chain's stack, adding it if needed, or
// FIREFOX_NO_STACK for an empty chain.
int64_t firefox_stack(struct firefox_tables *t, uint32_t chain);
// Returns the number of a string, which is made printable first.
uint32_t firefox_string(struct firefox_tables *t, const char *text);
// Returns the row of the function that contains a node's code.
uint32_t firefox_code_row(const struct firefox_tables *t, uint32_t node);
// Returns the node's inlined function, or NULL if it is not one.
const struct inlined *firefox_inlined(const struct firefox_tables *t,
                                      uint32_t node);
// Returns the number of a node's frame.
int64_t firefox_frame(const struct firefox_tables *t, uint32_t node);
// Whether an image has a file.
static inline bool firefox_has_file(uint32_t image)
{
    return image != IMAGE_UNKNOWN && image != IMAGE_CUT;
}
// The name of a row's function. For an inlined one without the mark, as frames
// have an inline depth.
#define FIREFOX_NAME 512
void firefox_name(const struct firefox_tables *t, uint32_t row,
                  char name[FIREFOX_NAME]);

// --- firefox_columns.c, firefox_shared.c -------------------------------------

// Write members of the thread's object, and of the profile's object. Each has a
// comma before it.
void firefox_tables_write(struct firefox_tables *t, FILE *out);
void firefox_shared_write(struct firefox_tables *t, FILE *out);
// Write a column of a table and a comma. FIREFOX_NULL becomes null.
#define FIREFOX_NULL INT64_MIN
void firefox_column(struct firefox_tables *t, FILE *out, const char *name,
                    uint32_t count,
                    int64_t (*value)(struct firefox_tables *t, uint32_t i));
void firefox_same(FILE *out, const char *name, uint32_t count,
                  const char *value);

// --- firefox_meta.c ----------------------------------------------------------

// Writes the first members of the profile's object.
void firefox_meta_write(const struct export *e);
