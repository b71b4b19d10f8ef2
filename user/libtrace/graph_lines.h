// Private to graph.c: threads with their open calls, and the lines about them.
//
// There are thousands of lines: they are put together without a printf, eight
// bytes at a time, and written many at once. `at` is where a line goes on.
#pragma once

#include "graph.h"

#include <string.h>

#define DEPTH_MAX 512u
#define BEGIN_MAX 96u

enum kind { FUNCTION, INTERRUPT, FAULT, CALL };

struct open_call {
    enum kind kind;
    uint32_t what; // entry address, vector, faulting address, number
    uint32_t mark; // struct trace_entry
    const struct calls_name *name; // of a function
    uint64_t time, off_cpu;        // when it began
};

// A thread; for those with number 0 (idle ones), of each CPU.
struct graph_thread {
    uint32_t thread, cpu;  // cpu: of its last event
    uint64_t left;         // when it left its CPU; 0: it runs, or it is unknown
    uint64_t off_cpu;      // cycles
    uint32_t depth, shown; // calls that are open; of which a line has begun
    struct graph_thread *next;
    // The begin of its lines, on CPU `begin_cpu`, up to the end of a duration:
    // 0 bytes: it is to be made. Behind it are blanks.
    uint32_t begin_cpu, begin_length;
    char begin[BEGIN_MAX];
    struct open_call open[DEPTH_MAX];
};

// Copies 16 bytes at least, and up to 7 more than `length`.
static inline char *put(char *at, const char *text, uint32_t length)
{
    char *end = at + length;

    memcpy(at, text, 16);
    for (at += 16, text += 16; end - at > 8; at += 16, text += 16)
        memcpy(at, text, 16);
    if (at < end)
        memcpy(at, text, 8);
    return end;
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

char *put_duration(const struct graph *g, char *at, uint64_t cycles);
char *put_result(char *at, int32_t result);
char *put_other_call(char *at, const struct open_call *c); // no function's

static inline char *put_call(char *at, const struct open_call *c)
{
    return c->kind == FUNCTION ? put(at, c->name->name, c->name->length)
                               : put_other_call(at, c);
}

// Begins a line with room for all of it, without a duration.
char *graph_line(struct graph *g, struct graph_thread *t, uint32_t depth);
char *graph_timed_line(struct graph *g, struct graph_thread *t, uint32_t depth,
                       uint64_t cycles);
// One that is no thread's.
char *graph_other_line(struct graph *g, uint32_t cpu);
