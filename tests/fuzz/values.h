// Shared by the files that make arguments' values.
//
//     values.c      descriptors, tasks, addresses; which token is what
//     strings.c     paths, nodes, text
//     structures.c  what pointers point to
//     messages.c    calls to boxes, options of profilers
#pragma once

#include "fuzz.h"

static inline uint32_t pick(struct draw *d, const uint32_t *values,
                            size_t count)
{
    return values[draw_below(d, (uint32_t)count)];
}
#define PICK(d, ...)                           \
    pick(d, (const uint32_t[]){ __VA_ARGS__ }, \
         sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

// --- values.c

// A descriptor of the worker's, seldom another number.
uint32_t descriptor(struct worker *w, struct draw *d);
// The id of a task or thread of the episode, or of none.
uint32_t victim(struct draw *d);
uint32_t in_arena(struct draw *d);
uint32_t bad_address(struct draw *d);
// Mostly in the arena; seldom bad, or before an unmapped page.
uint32_t buffer(struct worker *w, struct draw *d);

// --- what is put at `at`, which has room for ROOM_WORDS; these return bytes

// TOKEN_path, _node, _filesystem, _disk or _text. Sets w->last_length.
uint32_t put_string(struct worker *w, struct draw *d, uint32_t kind,
                    uint32_t *at);
uint32_t put_structure(struct worker *w, struct draw *d, uint32_t kind,
                       uint32_t *at);
// struct ipc_call; what it points to follows it.
uint32_t put_call(struct worker *w, struct draw *d, uint32_t *at);
