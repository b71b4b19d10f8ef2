// Functions and source lines of places in code, as addr2line of binutils tells
// them: one process for each image, each address asked once.
#pragma once

#include "coprocess.h"
#include "names.h"
#include "strobe.h"

struct line {
    const char *file; // NULL: not known
    uint32_t line;    // 0: not known
};

// A function at a place: one that was inlined there, or the one whose code it
// is.
struct line_frame {
    const char *function; // NULL: not known
    struct line line;
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
        uint32_t first, frames; // in the list of frames
        uint32_t next;
    } * known;
    uint32_t count, room;
    uint32_t *buckets;
    struct line_frame *frames;
    uint32_t frame_count, frame_room;
    struct names names;  // of files and functions
    const char *problem; // why addr2line did not answer, or NULL
    bool needed;         // then that ends the program
};

// No memory ends the program.
void lines_init(struct lines *l, struct profile *p);
void lines_free(struct lines *l);
// From now on the program ends when addr2line does not answer, also before.
void lines_need(struct lines *l);
// Asks for many places, those of an image in a row: faster than one by one.
void lines_ask(struct lines *l, const struct place *list, uint32_t count);
// What is at a place, the innermost inlined function first: one frame at least.
// Valid until the next question.
const struct line_frame *lines_frames(struct lines *l, struct place place,
                                      uint32_t *count);
// The line there: of a chain's inlined function (inlines.h) its own, of the
// function around it that of the inlined call. Where inlined functions are not
// in the chains the innermost one's.
struct line lines_find(struct lines *l, struct place place);
// `name`, kept once for all: equal names have equal pointers.
const char *lines_file(struct lines *l, const char *name);
// Of a path inside the project what comes behind its folder.
const char *lines_short_path(const struct profile *p, const char *path);
