// What begins and ends in a trace: system calls and page faults of threads, and
// handlers of interrupts. Only libc is used.
#pragma once

#include "reader.h"

#define SPAN_DEPTH_MAX 8u // of interrupts on a CPU

enum span_kind { SPAN_CALL, SPAN_FAULT, SPAN_INTERRUPT };

struct span {
    enum span_kind kind;
    uint32_t cpu, thread; // where it ended, or its thread left
    // A system call's number as of its begin (sigreturn changes the registers),
    // an address, or a vector.
    uint32_t what;
    uint64_t begin, end;
    bool whole;      // false: its thread has ended in it, or the trace
    uint32_t result; // of a whole call or fault
};

struct opened;

struct spans {
    void (*span)(void *arg, const struct span *s);
    void *arg;
    uint64_t calls_ended;    // with their threads
    uint64_t calls_open;     // at the trace's end
    uint64_t calls_unpaired; // an end is missing
    bool no_memory;          // some are missing
    // The rest is spans.c's.
    struct opened *threads;
    uint32_t count, room;
    struct {
        uint32_t depth;
        struct span open[SPAN_DEPTH_MAX];
    } cpu[TRACE_CPUS_MAX];
};

// Zeroed but for the first two members. Events in the order of time. An end
// whose begin was lost or precedes the trace is no span, nor are partial ones.
void spans_event(struct spans *s, const struct trace_event *e);
// Tells of the calls and faults that are open at `time`: no more events come.
void spans_finish(struct spans *s, uint64_t time);
void spans_free(struct spans *s);
