// The views of top: their columns, and the functions that fill their rows.
//
// Pure. Texts in rows belong to the later data set.
#pragma once

#include "model.h"

#define VIEW_COLUMNS 14 // maximum of all views

enum column_kind {
    COLUMN_ID,      // a number; SYSINFO_ALL: none
    COLUMN_NUMBER,  // signed
    COLUMN_PERCENT, // hundredths of a percent
    COLUMN_SIZE,    // bytes
    COLUMN_TIME,    // cycles, shown as seconds
    COLUMN_MS,      // cycles, shown as milliseconds
    COLUMN_STATE,   // enum sysinfo_state
    COLUMN_FLAG,
    COLUMN_TEXT,
};

struct column {
    const char *title; // on the screen
    const char *name;  // for -o and in JSON
    enum column_kind kind;
    unsigned width;
    unsigned rank; // when space is short, the highest ranks are dropped first
    char letter;   // the key that sorts by it; 0: none
};

union cell {
    int64_t number;
    const char *text;
};

struct row {
    uint32_t id;   // of the object; orders equal rows
    uint32_t task; // that it belongs to; SYSINFO_ALL: none
    bool active;   // something happened between the data sets
    union cell cells[VIEW_COLUMNS];
};

// Two data sets and their differences.
struct comparison {
    const struct dataset *before, *now;
    struct summary summary;
    struct sharing tasks; // state carried from row to row
};

void compare(const struct dataset *before, const struct dataset *now,
             struct comparison *out);

struct view {
    char key;
    const char *name, *meaning;
    const struct column *columns;
    unsigned column_count;
    const char *sort; // name of the default sort column
    size_t (*count)(const struct dataset *d);
    // Fills the next row; called for 0, 1, ... in this order.
    void (*fill)(struct comparison *c, size_t i, struct row *row);
};

extern const struct view views[];
extern const unsigned view_count;

// Return NULL if there is none.
const struct view *view_by_key(char key);
const struct view *view_by_name(const char *name);
// Returns -1 if there is none.
int view_column_by_letter(const struct view *v, char letter);
// By name or title, ignoring case. Returns -1 if there is none.
int view_column_by_name(const struct view *v, const char *name);
