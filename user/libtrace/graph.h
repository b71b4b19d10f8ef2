// The calls of the kernel as an indented text, while they happen: functions
// with what they call below them, and context switches, interrupts, faults and
// system calls between them.
//
// The text is made of events in the order of time. Only libc and reader.h are
// used.
#pragma once

#include "reader.h"

#include <strobe/calls.h>

#include <stdio.h>

#define GRAPH_TEXT 16384u

struct graph_thread;

struct graph {
    FILE *out;
    double cycle_ns;     // of the TSC
    uint64_t min_cycles; // calls that took less are left out
    // Names, never NULL: of the function with this entry address; of a thread,
    // at most 31 bytes, valid until the next call.
    const struct calls_name *(*function)(uint32_t address);
    const char *(*thread)(uint32_t thread);
    uint64_t calls;               // entries so far
    bool no_memory;               // some calls are missing for want of memory
    struct graph_thread *threads; // the graph's, as is the rest
    uint32_t length;              // of lines that are not written yet
    char text[GRAPH_TEXT];
};

// The name of a system call, "?" if there is none (call_names.c).
const char *trace_call_name(uint32_t number);
// The Nth system call's name and number. NULL: there are fewer.
const char *trace_nth_call(uint32_t n, uint32_t *number);

void graph_print_titles(struct graph *g);
void graph_event(struct graph *g, const struct trace_event *e);
// Threads may have other names from now on.
void graph_forget_names(struct graph *g);
// Writes all lines so far.
void graph_flush(struct graph *g);
// Prints what is still due, and frees all memory.
void graph_finish(struct graph *g);
