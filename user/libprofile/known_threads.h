// The threads that were named, each with the program that it ran at that time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// A zeroed structure is empty.
struct known_threads {
    struct known_thread {
        uint32_t thread, program; // program 0: a free entry
    } * list;                     // a hash table
    uint32_t count, room;
};

// Records that a thread runs a program (a number from 1 on). Returns whether
// this pair is new; always false when out of memory.
bool known_threads_add(struct known_threads *k, uint32_t thread,
                       uint32_t program);
void known_threads_free(struct known_threads *k);
