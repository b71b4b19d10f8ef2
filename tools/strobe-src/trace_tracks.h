// What a file for a viewer of tracks has: pieces of threads' lives, slices and
// other events of a trace, as trace_perfetto.c writes them.
//
// What only one task does (`trace record -t`, `-1`) says nothing of who else
// ran, and not who woke its threads: then only running pieces are told, and
// wakes are points.
#pragma once

#include "user/libtrace/file.h"
#include "user/libtrace/lives.h"
#include "user/libtrace/spans.h"

// A thread that has a track.
struct track {
    uint32_t thread;
    uint32_t task; // as of its first event, 0: unknown
};

// What is told.
struct tracks_writer {
    void (*piece)(void *arg, const struct life *t, uint64_t until);
    void (*span)(void *arg, const struct span *s);
    // A switch or a wake with all its fields, and its exact time (`at`).
    void (*sched)(void *arg, const struct trace_event *e, uint64_t at);
    // Any other event that is neither part of a slice nor a loss.
    void (*point)(void *arg, const struct trace_event *e);
    // `t->lost` has grown. e == NULL: behind a CPU's last event.
    void (*lost)(void *arg, const struct trace_event *e, uint64_t time);
    // What a sensor had.
    void (*sensed)(void *arg, const struct recorded *one);
    // The first event with this thread, before it is told.
    void (*thread)(void *arg, const struct track *t);
};

// Zeroed but for the first three members.
struct tracks {
    struct trace_file *file;
    const struct tracks_writer *to;
    void *arg;
    uint64_t lost; // events so far
    struct track *threads;
    uint32_t thread_count;
    uint64_t first, last; // events' times so far
    // The rest is trace_tracks.c's.
    uint32_t thread_room;
    struct lives lives;
    struct spans spans;
    bool begun, no_memory;
    FILE *text;
    char *text_bytes;
    size_t text_size;
};

// Tells all of the file. Returns NULL, or what is wrong with it: what precedes
// that was told.
const char *tracks_tell(struct tracks *t);
// ns since the first event.
uint64_t tracks_ns(const struct tracks *t, uint64_t time);
// The fields of an event as in `trace report`, *size bytes, until the next
// call.
const char *tracks_text(struct tracks *t, const struct trace_event *e,
                        size_t *size);
// The same of what a sensor had.
const char *tracks_sensed_text(struct tracks *t, const struct recorded *one,
                               size_t *size);
void tracks_free(struct tracks *t);
