// Which program each task ran, and when. The entries are the tasks that existed
// when the session began, and every fork, exec and exit since.
#pragma once

#include <stdint.h>

struct program {
    uint32_t task, parent;
    uint64_t time; // TSC at which it began
    uint32_t image;
    uint32_t
        load_bias; // of the image: address in memory minus address in the file
    uint32_t code, code_size; // where its code is, if a recording says so; or 0
    char name[16];
    uint32_t next; // an earlier entry with the same hash
};

#define PROGRAM_NONE UINT32_MAX // of a task without a task record
#define PROGRAM_BUCKETS 1024u
struct programs {
    struct program *list; // only grows: indices remain valid
    uint32_t count, room;
    uint32_t buckets[PROGRAM_BUCKETS];
    uint64_t forgotten; // entries lost for want of memory
};

void programs_init(struct programs *p);
void programs_free(struct programs *p);
// Adds a program. The programs of one task are added in the order of time.
void programs_add(struct programs *p, const struct program *program);
// Returns what `task` ran at `time`, or NULL if there is no entry. The first
// entry of a task applies to the time before it, too. The pointer is valid
// until the next programs_add.
const struct program *programs_find(const struct programs *p, uint32_t task,
                                    uint64_t time);
// Returns the index in the list, or PROGRAM_NONE if `found` is NULL.
uint32_t programs_index(const struct programs *p, const struct program *found);
// Returns the name of the program with this index, or "?" if it is unknown.
const char *programs_name(const struct programs *p, uint32_t index);
