// What the threads of a trace did: each thread's life as pieces without gaps,
// in which it runs, is interrupted, is ready for a CPU, or is blocked.
//
// The times are those that the ledger and the scheduler read (`at` of
// points.def): so without losses the running pieces are, to the cycle, what the
// ledger charged to the thread. A trace needs sched/switch and sched/wake, and
// for `interrupted` irq/enter and irq/return. Only libc is used.
#pragma once

#include "reader.h"

enum life_state {
    LIFE_UNKNOWN, // before its first event, or after a loss
    LIFE_RUNNING,
    LIFE_READY,
    LIFE_BLOCKED,
    LIFE_ENDED,
};

struct life {
    uint32_t thread;
    uint32_t cpu; // of the current piece, while it runs
    enum life_state state;
    uint64_t since;        // TSC: the begin of the current piece
    uint64_t began, until; // of all pieces; until: of the last whole one
    // running + interrupted + ready + blocked == until - began, less the gaps
    // that losses make. Running without interrupts.
    uint64_t running, interrupted, ready, blocked;
    uint64_t gaps;
    uint64_t switches; // times that it got a CPU
};

struct lives {
    // Unless it is NULL: a piece of a thread, which began at `since`, ends.
    void (*piece)(void *arg, const struct life *t, uint64_t until);
    void *arg;
    struct life *all; // in the order of their first event
    uint32_t count, room;
    bool no_memory; // some are missing
    // A thread runs that was not ready, or is made ready that was not blocked:
    // its cause is missing, or the CPUs' clocks do not agree. Those while a
    // CPU's events are lost are not counted.
    uint64_t contradictions;
    uint64_t lost_at; // the time of the last loss
    struct {
        bool known;
        uint32_t thread;      // that runs there
        uint64_t since;       // when it began to
        uint64_t interrupted; // in this piece
        uint32_t depth;       // of interrupts
        uint64_t interrupt_at;
        // busy + idle + interrupts == the time since the CPU's first event,
        // less what losses hide.
        uint64_t busy, idle, interrupts;
        uint64_t contradictions; // of all CPUs, up to its last event
    } cpu[TRACE_CPUS_MAX];
};

// Zeroed before the first event, but for the first three members. Events in the
// order of time; nothing is made of partial ones.
void lives_event(struct lives *l, const struct trace_event *e);
// The time of which `low`, an event's `at`, is the low word: shortly before the
// event, but not before the last loss.
uint64_t lives_time(const struct lives *l, const struct trace_event *e,
                    uint32_t low);
// The life of a thread, or NULL.
struct life *lives_find(struct lives *l, uint32_t thread);
// All that is open ends at `time`: no more events will come.
void lives_finish(struct lives *l, uint64_t time);
void lives_free(struct lives *l);
