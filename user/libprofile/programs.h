// Which program a task ran when: what was told of tasks that were there when
// the session began, and of every fork, exec and end since.
#pragma once

#include <stdint.h>

struct program {
    uint32_t task, parent;
    uint64_t time; // TSC, from when on
    uint32_t image;
    uint32_t load_bias; // of the image: memory's addresses less its file's
    uint32_t code, code_size; // where its code is, as a recording tells; or 0
    char name[16];
    uint32_t next; // of the same hash, an earlier one
};

#define PROGRAM_NONE UINT32_MAX // of a task that nobody told of
#define PROGRAM_BUCKETS 1024u
struct programs {
    struct program *list; // grows only: its indices stay
    uint32_t count, room;
    uint32_t buckets[PROGRAM_BUCKETS];
    uint64_t forgotten; // what memory did not suffice for
};

void programs_init(struct programs *p);
void programs_free(struct programs *p);
// Of one task in the order of time.
void programs_add(struct programs *p, const struct program *program);
// What `task` ran at `time`, or NULL. What is told first of a task holds for
// the time before, too. Stays until the next programs_add.
const struct program *programs_find(const struct programs *p, uint32_t task,
                                    uint64_t time);
// Its index in the list; PROGRAM_NONE of NULL.
uint32_t programs_index(const struct programs *p, const struct program *found);
// What the program of this index is called; "?": nobody told.
const char *programs_name(const struct programs *p, uint32_t index);
