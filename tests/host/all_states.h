// All states that a model can reach: a table of those seen, and a stack of
// those whose successors are to be found. States are compared by their bytes.
#pragma once

#include <stdlib.h>
#include <string.h>

#include "lib/types.h"

#define STATES_MAX (1u << 24) // places of the table

static struct {
    size_t size; // of a state
    u8 *states;  // a hash table; `used` marks places
    u8 *used;
    u32 *stack; // places
    u32 count, top;
} all_states;

static inline void states_begin(size_t size)
{
    all_states.size = size;
    all_states.states = malloc(STATES_MAX * size);
    all_states.stack = malloc(STATES_MAX * sizeof(u32));
    all_states.used = calloc(STATES_MAX, 1);
    assert_true(all_states.states && all_states.stack && all_states.used);
    all_states.count = all_states.top = 0;
}

static inline void states_end(void)
{
    free(all_states.states);
    free(all_states.stack);
    free(all_states.used);
}

static inline void states_add(const void *state)
{
    size_t size = all_states.size;
    u64 hash = 14695981039346656037u; // FNV-1a
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const u8 *)state)[i]) * 1099511628211u;
    u32 place = (u32)(hash ^ hash >> 32) % STATES_MAX;
    for (; all_states.used[place]; place = (place + 1) % STATES_MAX) {
        if (memcmp(all_states.states + place * size, state, size) == 0)
            return;
    }
    assert_true(all_states.count < STATES_MAX / 4 * 3);
    all_states.used[place] = 1;
    memcpy(all_states.states + place * size, state, size);
    all_states.stack[all_states.top++] = place;
    all_states.count++;
}

// The next state whose successors are to be added. False: all are.
static inline bool states_take(void *state)
{
    if (!all_states.top)
        return false;
    u32 place = all_states.stack[--all_states.top];
    memcpy(state, all_states.states + place * all_states.size, all_states.size);
    return true;
}
