// The functions of the kernel that call tracing can choose, as the node
// system.functions and files of traces list them, and their choice by patterns.
//
// Nothing but libc is used, so that host tests and harnesses can link it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct function {
    uint32_t address, size; // size: in bytes
    const char *name, *file;
};

struct functions {
    struct function *list; // ascending by address
    uint32_t count;
    char *text; // holds the strings of functions_read
};

// Reads lines ADDRESS SIZE NAME FILE, the address in hexadecimal, of which it
// keeps a copy. Returns NULL, or a message; then there are none.
const char *functions_read(struct functions *f, const char *text, size_t size);
void functions_free(struct functions *f);
// The function that begins at or contains `address`, or NULL.
const struct function *functions_find(const struct functions *f,
                                      uint32_t address);

// What is chosen. A pattern is a shell's pattern (*, ?, [a-z]) of functions'
// names or, with a '/', of source files: "sched_*", "kernel/mm/*", and "lib/",
// the same as "lib/*". A pattern after '!' leaves out. A function is chosen if
// any pattern chooses it (or if there is none that chooses), none leaves it
// out, and it has `bytes` or more.
struct function_choice {
    const char *const *patterns;
    uint32_t pattern_count;
    uint32_t bytes;
};

// Fills `out`, which has room for f->count addresses, ascending. Returns their
// number.
uint32_t functions_choose(const struct functions *f,
                          const struct function_choice *c, uint32_t *out);
// The first pattern that no function matches, or NULL.
const char *functions_missed(const struct functions *f,
                             const struct function_choice *c);
// Prints "Near are:" and names or, for a pattern with a '/', files that are
// like a pattern, a line each; nothing if there are none.
void functions_print_near(const struct functions *f, const char *pattern,
                          FILE *out);
