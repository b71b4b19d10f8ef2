// A file of tools/oracle while it is read: its paths, blocks and runs.
#pragma once

#include "oracle.h"

#define NONE UINT32_MAX
#define DEPTH_MAX 500

enum root_kind {
    ROOT_FIRMWARE,
    ROOT_START,
    ROOT_THREAD,
    ROOT_TASK, // before it is in user mode
    ROOT_INTERRUPT,
    ROOT_PROGRAM,
    ROOT_IDLE,
    ROOT_CODE // of flat counts: the kernel, the firmware
};

struct path {
    uint32_t parent;  // NONE: a root
    uint32_t address; // of the caller in its parent, as in struct place
    uint32_t root;    // index in `paths`
    uint32_t depth;
    uint32_t chain; // of its callers
    // Of a root:
    enum root_kind kind;
    const char *name;
    uint32_t number;
    uint64_t instructions;
    uint32_t image, program;
    uint32_t bias;      // address in memory minus address in the file
    uint32_t waits;     // ROOT_IDLE: the root of what waits
    uint64_t halted_ns; // likewise
    const char *also;   // another file with the same bytes, or NULL
    size_t file;        // in elves.list
    uint32_t score;     // blocks or runs that it explains
};

struct block {
    uint32_t at, insns;
    const char *bytes; // hexadecimal digits, in the file
    uint32_t size;
    uint32_t *offsets;
    uint8_t *code;
};

#define VDSO_BASES_MAX 64 // it is at one address, unless addresses are random

struct run {
    uint32_t path, block;
    uint64_t count;
    const char *cuts; // the rest of the line
};

struct reading {
    const char *name, *at, *end;
    bool flat; // counts without paths
    struct profile *profile;
    struct path *paths;
    uint32_t path_count, path_room;
    struct block *blocks;
    uint32_t block_count, block_room;
    struct run *runs;
    uint32_t run_count, run_room;
    uint32_t vdso_bases[VDSO_BASES_MAX], vdso_count, vdso_size;
};

// Ends the program with a message.
_Noreturn void oracle_damaged(const struct reading *r, const char *why);
// Returns the list with more room for elements of this size.
void *oracle_grown(const struct reading *r, void *list, uint32_t *room,
                   size_t size);
// Takes `word`, if it is next.
bool oracle_take(struct reading *r, const char *word);
// Takes a number and the spaces behind it.
uint64_t oracle_number(struct reading *r, unsigned base);
// Returns a hexadecimal digit's value, or -1.
int oracle_digit(char c);

// oracle_parse.c: reads the lines.
void oracle_parse(struct reading *r, struct oracle_check *check);

// oracle_programs.c: finds the vDSO, and the file of each program by the bytes
// of its blocks.
void oracle_find_programs(struct reading *r);
// The vDSO's base if the address is in it, else 0.
uint32_t oracle_vdso_of(const struct reading *r, uint32_t address);

// The blocks that a file has, and the biases at which it has them.
struct matches {
    uint32_t *block, *bias;
    uint32_t count, room;
};
// Calls fn(arg, file, matches) for each file that has blocks.
void oracle_match_files(struct reading *r,
                        void (*fn)(void *arg, size_t file,
                                   const struct matches *m),
                        void *arg);
// The root is of this file, which explains `score` runs or blocks.
void oracle_name_program(struct reading *r, struct path *root, size_t file,
                         uint32_t bias, uint32_t score);
// Another file explains `score`: notes it, if that is as many.
void oracle_name_twin(struct reading *r, struct path *root, size_t file,
                      uint32_t score);

// oracle_flat.c: the same for flat counts.
void oracle_split_programs(struct reading *r);
