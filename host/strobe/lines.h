// Source lines of places in code, as addr2line of binutils tells them: one
// process for each image, each address asked once.
#pragma once

#include "coprocess.h"
#include "strobe.h"

struct line {
    const char *file; // NULL: not known
    uint32_t line;    // 0: not known
};

struct lines {
    struct profile *profile;
    struct lines_image {
        struct coprocess process;
        bool asked; // it was started, or cannot be
        bool gone;
    } * images;
    uint32_t image_count;
    struct lines_known {
        struct place place;
        struct line line;
        uint32_t next;
    } * known;
    uint32_t count, room;
    uint32_t *buckets;
    char **files; // each name once
    size_t file_count, file_room;
};

// No memory ends the program.
void lines_init(struct lines *l, struct profile *p);
void lines_free(struct lines *l);
// The innermost inlined function's line counts.
struct line lines_find(struct lines *l, struct place place);
// `name`, kept once for all: equal names have equal pointers.
const char *lines_file(struct lines *l, const char *name);
// Of a path inside the project what comes behind its folder.
const char *lines_short_path(const struct profile *p, const char *path);
