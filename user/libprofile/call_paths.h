// Call paths of a trace of the kernel (<strobe/calls.h>): the records of all
// CPUs merged by path, without the part of the time that tracing itself took.
//
// The records are not trusted. Nothing but libc and user/libread/sort.h is
// used.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <strobe/calls.h>

#define CALL_PATH_NONE UINT32_MAX

// Times in TSC cycles.
struct call_path {
    uint32_t function; // entry address, or CALLS_ROOT_...
    uint32_t parent;   // before this one; a root's is itself
    uint32_t depth;    // of a root: 0
    uint64_t open;     // calls that have not returned yet
    uint64_t calls;
    uint64_t own;   // without the functions that it called
    uint64_t total; // with them
    // Taken by tracing: by the stubs, and what they cannot measure, which is
    // removed from `own`.
    uint64_t tracing;
    uint64_t blocked, interrupted; // not in `own`
    uint64_t longest, shortest;    // shortest: UINT64_MAX if unknown
    uint32_t next;                 // in the same bucket of the hash table
};

struct call_paths {
    struct call_path *list; // a parent precedes its children
    uint32_t count, room;
    uint32_t *buckets; // of `room`, a power of two
};

// Merges the records that CALLS_READ stores behind `info`, of all CPUs or of
// CPU number `cpu` (-1: all). Returns NULL, or a message; then there are none.
const char *call_paths_merge(struct call_paths *p,
                             const struct calls_info *info,
                             const struct calls_node *records, int cpu);
void call_paths_free(struct call_paths *p);
bool call_is_root(uint32_t function);
// "[threads]", "[interrupts]", "[idle]"; NULL for a function.
const char *call_root_name(uint32_t function);
// Makes a path without caller of each function, roots left out, with the sums
// of its paths. `total` counts time once, even if the function is in a path
// several times. call_paths_free frees them. No list: not enough memory.
struct call_paths call_functions(const struct call_paths *p);
// Their index of this function, or CALL_PATH_NONE.
uint32_t call_functions_find(const struct call_paths *functions,
                             uint32_t function);
// Adds the arcs of all CPUs (-1) or of one, and sorts them by from and to.
// Returns them, which the caller frees, or NULL: not enough memory.
struct calls_arc *call_arcs_merge(const struct calls_info *info,
                                  const struct calls_arc *records, int cpu,
                                  uint32_t *count);
