// Private to graph.c: threads with their open calls, and the lines about them.
//
// There are thousands of lines: they are put together without a printf, eight
// bytes at a time, and written many at once. `at` is where a line goes on.
#pragma once

#include "graph.h"

#include <string.h>

#define DEPTH_MAX 512u

enum kind { FUNCTION, INTERRUPT, FAULT, CALL };

struct open_call {
    enum kind kind;
    uint32_t what;          // entry address, vector, faulting address, number
    uint32_t mark;          // struct trace_entry
    uint64_t time, off_cpu; // when it began
};

// A thread; for those with number 0 (idle ones), of each CPU.
struct graph_thread {
    uint32_t thread, cpu;  // cpu: of its last event
    uint64_t left;         // when it left its CPU; 0: it runs, or it is unknown
    uint64_t off_cpu;      // cycles
    uint32_t depth, shown; // calls that are open; of which a line has begun
    struct graph_thread *next;
    // The begin of its lines, on CPU `begin_cpu`; 0 bytes: it is to be made.
    uint32_t begin_cpu, begin_length;
    char begin[48];
    struct open_call open[DEPTH_MAX];
};

// Copies up to 7 bytes more than `length`.
static inline char *put(char *at, const char *text, uint32_t length)
{
    for (uint32_t i = 0; i < length; i += 8)
        memcpy(at + i, text + i, 8);
    return at + length;
}

static inline char *put_text(char *at, const char *text)
{
    return stpcpy(at, text);
}

#define PUT(at, literal) \
    ((char *)memcpy(at, literal, sizeof(literal)) + sizeof(literal) - 1)

static inline void end_line(struct graph *g, const char *at)
{
    g->length = (uint32_t)(at - g->text);
}

uint64_t graph_ns(const struct graph *g, uint64_t cycles);
// With blanks before it, if it is shorter than `width`.
char *put_duration(char *at, uint32_t width, uint64_t ns);
char *put_result(char *at, int32_t result);
char *put_function(const struct graph *g, char *at, uint32_t address);
char *put_call(const struct graph *g, char *at, const struct open_call *c);

// Begins a line with room for all of it. `cycles` NULL: it has no duration.
char *graph_line(struct graph *g, struct graph_thread *t, uint32_t cpu,
                 const uint64_t *cycles, uint32_t depth);
// One that is no thread's.
char *graph_other_line(struct graph *g, uint32_t cpu);
