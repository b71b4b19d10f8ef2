// The events that one run samples: one or several at once, each with a session,
// samples and statistics of its own.
#pragma once

#include "perf_write.h"
#include "user/libstrobe/strobe.h"

#define EVENTS_MAX PERF_EVENTS_MAX

struct event {
    struct sprofile_options asked;
    struct sprofile_info info;
    struct samples samples;
    struct profile_session session;
    bool over; // end of stream: there is nothing more to read
};
struct events {
    struct event list[EVENTS_MAX];
    uint32_t count;
};

// The names given with -s or -e.
struct event_names {
    char name[EVENTS_MAX][SPROFILE_EVENT_NAME];
    uint32_t count;
};

// Adds the names of a list "a,b,c", each shorter than `room` bytes. `option` is
// -s or -e. Returns false after printing what is wrong with the list.
bool event_names_add(struct event_names *n, char option, const char *list,
                     size_t room);
// Chooses what to sample: one event for each source or, if several events are
// named, one for each event, all with the same source. `common` holds the
// options of all. Returns false after printing an error message.
bool events_choose(struct events *e, const struct sprofile_options *common,
                   const struct event_names *sources,
                   const struct event_names *events);
// -m: bytes of a ring that holds the samples of `seconds` seconds, 0 for 0. A
// size above the maximum is reported and reduced to the maximum.
uint32_t events_ring_bytes(const struct sprofile_options *o, uint32_t seconds);
// Starts all sessions, for one task or (0) the whole system. An error ends the
// program with a message.
void events_begin(struct events *e, uint32_t task, uint32_t flags);
void events_free(struct events *e);
// The event's name, unique among the events of its run as a rule: what it
// counts, or its source if it samples by time.
const char *event_name(const struct event *e);

// The exit status of a tool that would end with `status`: not 0 if an event has
// hardly any of its samples (header_starved), with a message on standard error.
int events_status(const struct events *e, int status);

// Handles -g=dwarf[,SIZE] and -g=lbr (or -G=), which getopt cannot parse: call
// chains from large stack copies, or from the CPU's records of calls. Consumes
// argv[optind] if it is that option, and sets *letter to g or G. A wrong SIZE
// ends the program by `wrong`, after a message.
bool events_chain_option(char *const argv[], int *letter,
                         struct sprofile_options *o, void (*wrong)(void));
