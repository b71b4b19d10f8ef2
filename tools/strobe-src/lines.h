// Functions and source lines of places in code, from addr2line of binutils: one
// process for each image. Each address is asked once, then cached.
#pragma once

#include "coprocess.h"
#include "names.h"
#include "strobe.h"

struct line {
    const char *file; // NULL: not known
    uint32_t line;    // 0: not known
};

// A function at a place: one that is inlined there, or the one that contains
// the place.
struct line_frame {
    const char *function; // NULL: not known
    struct line line;
};

struct lines {
    struct profile *profile;
    struct lines_image {
        struct coprocess process;
        bool asked; // a start was tried
        bool gone;  // it was not started, or has ended
    } * images;
    uint32_t image_count;
    struct lines_known {
        struct place place;
        uint32_t first, frames; // in `frames` below: index, number
        uint32_t next;
    } * known;
    uint32_t count, room;
    uint32_t *buckets;
    struct line_frame *frames;
    uint32_t frame_count, frame_room;
    struct names names;  // of files and functions
    const char *problem; // why addr2line did not answer, or NULL
    bool needed;         // end the program if addr2line does not answer
};

// Lack of memory ends the program, here and below.
void lines_init(struct lines *l, struct profile *p);
void lines_free(struct lines *l);
// Ends the program with a message if addr2line has not answered, or later does
// not answer.
void lines_need(struct lines *l);
// Looks up many places, faster than one by one. Places of one image should be
// adjacent in the list.
void lines_ask(struct lines *l, const struct place *list, uint32_t count);
// Returns the functions at a place, the innermost inlined one first: at least
// one frame. Valid until the next look-up.
const struct line_frame *lines_frames(struct lines *l, struct place place,
                                      uint32_t *count);
// Returns the source line of a place in a chain. If inlined functions are in
// the chains (inlines.h), that is the line in the place's own function, which
// may be that of an inlined call; else the line in the innermost function.
struct line lines_find(struct lines *l, struct place place);
// Returns a copy of `name`, stored once: equal names have equal pointers.
const char *lines_file(struct lines *l, const char *name);
// Returns a path inside the project relative to its root, others unchanged.
const char *lines_short_path(const struct profile *p, const char *path);
