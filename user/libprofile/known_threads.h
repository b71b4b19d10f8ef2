// Threads that have been named, each with the program that it ran then.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Zeroed: none.
struct known_threads {
    struct known_thread {
        uint32_t thread, program; // program 0: a free place
    } * list;                     // a hash table
    uint32_t count, room;
};

// Whether a thread was not known yet by that program (a number from 1 on): now
// it is. Without memory it is never new.
bool known_threads_add(struct known_threads *k, uint32_t thread,
                       uint32_t program);
void known_threads_free(struct known_threads *k);
