// Trace points as programs see them, and the trace: what happened in the
// kernel, in order, on each CPU.
//
//     phone = kbox_connect(any task of yours)
//     ipc_call(phone, SPROFILE_M_TRACE_BEGIN, &options)
//     ipc_call(phone, SPROFILE_M_DATA_READ, buffer, size)      again and again
//
// The points, their numbers and fields are generated from points.def. Fields
// are packed; all is little-endian. All times are TSC cycles.
#pragma once

#include <stdint.h>

enum trace_number {
#define POINT(group, name, fields, when) TRACE_##group##_##name,
#include <strobe/points.def>
#undef POINT
    TRACE_POINTS
};

#define U8(name) uint8_t name;
#define U16(name) uint16_t name;
#define U32(name) uint32_t name;
#define U64(name) uint64_t name;
#define POINT(group, name, fields, when) \
    struct trace_##group##_##name {      \
        fields                           \
    } __attribute__((packed));
#include <strobe/points.def>
#undef POINT
#undef U8
#undef U16
#undef U32
#undef U64

// --- sessions ---------------------------------------------------------------

#define TRACE_VERSION 3

#define TRACE_ALL_POINTS (0xffffffffu >> (32 - TRACE_POINTS))
#define TRACE_COUNTERS 2u
#define TRACE_COUNTER_NAME 32u

struct trace_options {
    uint32_t size; // sizeof(struct trace_options)
    // Only what the threads of this task do; 0: all that happens, but for what
    // the task does that begins the trace.
    uint32_t task;
    uint32_t ring_bytes; // for each CPU; 0: the kernel chooses
    uint32_t points;     // bit N: point N of enum trace_number
    // Entries and exits of functions: as in <strobe/calls.h>, whose trace this
    // is, too (there is one at a time). 0 functions: none.
    uint32_t functions; // address of an array of entry addresses, ascending
    uint32_t function_count;
    uint32_t depth; // of nested calls that are traced; 0: CALLS_DEPTH_MAX
    // Not 0: a flight. When a ring is full its oldest events go, and not the
    // new ones; SPROFILE_M_PAUSE keeps what happened in the last so many
    // milliseconds, and only then can events be read.
    uint32_t flight_ms;
    // 1: of functions only the calls, TRACE_R_CALL: which ran, in their order,
    // without returns and durations. `depth` is 0.
    uint32_t calls_only;
    // The events of sched/pmc, as <strobe/kbox.h> names them; "": none, and
    // that point is never passed. The counters are the trace's until it ends.
    char counters[TRACE_COUNTERS][TRACE_COUNTER_NAME];
};

// SPROFILE_M_TRACE_BEGIN: -EINVAL: an option is out of range, or an address is
// no function's that can be chosen; -EBUSY: functions, and calls are traced
// already (CALLS_INFO says by whom); or counters, and another trace has them,
// or a CPU has too few that are free; -ENODEV: there are no performance
// counters; -EOPNOTSUPP: they cannot count these events; -ENOENT: there is no
// such event; -EUSERS: as many traces as there can be; -ESRCH: no such task;
// -EPERM: may not profile everything; -ENOMEM: nothing is switched on.
// SPROFILE_M_PAUSE stops it for good: what is recorded can still be read.
// SPROFILE_M_END ends it.

// SPROFILE_M_INFO, on the trace's phone. arg[1] = its address.
struct trace_info {
    uint32_t version; // TRACE_VERSION
    uint32_t cpus;
    uint64_t tsc_hz;
    // Records that were read; that there was no room for. What happened is
    // their sum, plus what is still to be read.
    uint64_t recorded, lost;
    // With functions: calls nested too deeply; times that a thread without
    // memory for its frames came to a CPU. Their calls are not in the trace.
    uint64_t too_deep, no_frames;
    uint32_t ring_bytes; // of each CPU
    uint32_t tasks_lost; // SPROFILE_R_TASK for which there was no room
    // What an event with 16 bytes of fields costs, in cycles, measured when the
    // trace began: from its point to the return. The least of some rounds.
    uint32_t event_cycles;
    uint32_t tsc_error_ppm; // how far tsc_hz may be off
    // Of the lost ones: the CPU had spent more than a quarter of its time on
    // events. Not with functions.
    uint64_t throttled;
    // A flight's that was paused: events that were overwritten, or are too old;
    // from this time on all are there, but for those that are lost (0: from the
    // beginning).
    uint64_t overwritten, since;
};

// --- what DATA_READ stores --------------------------------------------------

// Blocks: this head and `size` bytes.
struct trace_block {
    uint32_t cpu;  // or TRACE_BLOCK_TASKS
    uint32_t size; // a multiple of 4
    // What happened on this CPU before is in this block or an earlier one,
    // unless the read's buffer was full.
    uint64_t until;
};
// Its bytes are struct sprofile_task records (<strobe/kbox.h>): the targets'
// forks, execs and ends, and threads' names; of a trace of one task, too, all
// tasks'. None are added once the trace is paused or its task has ended.
#define TRACE_BLOCK_TASKS 0xffffffffu

// Records of one CPU are in the order of time. Each begins with a word: the low
// TRACE_TIME_BITS of its time, its type, and its size in words, this one
// included. The rest of the time is that of the last TIME or LOST record.
#define TRACE_TIME_BITS 21
#define TRACE_TYPE_BITS 6
#define TRACE_SIZE_BITS 5
#define TRACE_WORDS_MAX 31u // of a record

#define TRACE_HEAD(time, type, words)                          \
    ((uint32_t)(time) << (TRACE_TYPE_BITS + TRACE_SIZE_BITS) | \
     (uint32_t)(type) << TRACE_SIZE_BITS | (uint32_t)(words))
#define TRACE_HEAD_WORDS(head) ((head)&TRACE_WORDS_MAX)
#define TRACE_HEAD_TYPE(head) \
    ((head) >> TRACE_SIZE_BITS & ((1u << TRACE_TYPE_BITS) - 1))
#define TRACE_HEAD_TIME(head) ((head) >> (TRACE_TYPE_BITS + TRACE_SIZE_BITS))

// Types: the points' numbers, whose records have the point's fields, filled up
// to words with 0; and
#define TRACE_R_PAD 56 // nothing: the rest of a page
#define TRACE_R_TIME 57
#define TRACE_R_LOST 58
#define TRACE_R_ENTRY 59
#define TRACE_R_EXIT 60
#define TRACE_R_CALL 61

// At least once in TRACE_PAGE bytes, where no record before it goes on, and
// whenever the upper bits of the time change. Without sched/switch also before
// the first record of a thread since it came to the CPU.
#define TRACE_PAGE 4096u
struct trace_time {
    uint32_t head;
    uint32_t thread;  // that runs on the CPU
    uint32_t time[2]; // low word first
};
// The same, where records are missing: as many as `count`.
struct trace_lost {
    struct trace_time time;
    uint32_t count;
};

// A traced function is called. Calls nest by `mark`, an address in the
// thread's stack: calls whose mark is lower have been left, with a return or
// without one. A call with the same mark is a tail call.
struct trace_entry {
    uint32_t head;
    uint32_t function; // its entry address
    uint32_t mark;
};
// It returns to its caller.
struct trace_return {
    uint32_t head;
    uint32_t function;
    // The thread's own time since the entry: without the time that it was not
    // on a CPU, interrupts, and the tracing of the functions that it called.
    uint32_t cycles[2]; // low word first
};
// A traced function is called, in a trace of calls only.
struct trace_call {
    uint32_t head;
    uint32_t function; // its entry address + TRACE_CALL_OFFSET
    uint32_t caller;   // the return address: behind the call instruction, or
                       // that of a function that has left by a jump (tail call)
};
#define TRACE_CALL_OFFSET 5u // bytes of the call in a patched entry

_Static_assert(TRACE_POINTS <= 32, "bits of trace_options.points");
