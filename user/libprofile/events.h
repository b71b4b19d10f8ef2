// What one run samples: one event or several at once, each by a session of its
// own, with samples and figures of its own.
#pragma once

#include "perf_write.h"
#include "user/libstrobe/strobe.h"

#define EVENTS_MAX PERF_EVENTS_MAX

struct event {
    struct sprofile_options asked;
    struct sprofile_info info;
    struct samples samples;
    struct profile_session session;
    bool over; // there is nothing to read any more
};
struct events {
    struct event list[EVENTS_MAX];
    uint32_t count;
};

// The names that -s or -e have named.
struct event_names {
    char name[EVENTS_MAX][SPROFILE_EVENT_NAME];
    uint32_t count;
};

// Adds those of a list "a,b,c", each shorter than `room`. False: it has been
// said what is wrong with it. `option`: -s or -e.
bool event_names_add(struct event_names *n, char option, const char *list,
                     size_t room);
// What is to be sampled: by each source, or, where several events are named,
// each of these by the one source. `common` holds for all. Likewise.
bool events_choose(struct events *e, const struct sprofile_options *common,
                   const struct event_names *sources,
                   const struct event_names *events);
// -m: bytes of a ring that holds the samples of so many seconds; it is said if
// that is too much. 0 of 0.
uint32_t events_ring_bytes(const struct sprofile_options *o, uint32_t seconds);
// Begins all sessions, of one task, or (0) the system's. What is wrong is said,
// and ends the program.
void events_begin(struct events *e, uint32_t task, uint32_t flags);
void events_free(struct events *e);
// What the event is called among the others of its run: what it counts, or the
// source of what is taken by time.
const char *event_name(const struct event *e);

// -g=dwarf (or -G=dwarf), which getopt does not know: with much of the stack.
// Takes argv[optind] if it is that; *letter is g or G then.
bool events_deep_option(char *const argv[], int *letter,
                        struct sprofile_options *o);
