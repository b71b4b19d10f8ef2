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

// --- options ----------------------------------------------------------------

#define SAMPLING_RATE_MAX 100000
#define SAMPLING_RING_SECONDS_MAX 3600

// For struct tool_option's `take`. The arguments are lists of names "a,b,c" of
// sources and of events, for a struct event_names; the others are for a struct
// sprofile_options. NULL or DWARF[,SIZE] or LBR: how calls are found.
const char *sampling_take_sources(void *names, char *list);
const char *sampling_take_events(void *names, char *list);
const char *sampling_take_calls(void *options, char *how);
const char *sampling_take_random(void *options, char *none);
const char *sampling_take_fixed(void *options, char *none);

// Rows of a table of options: how `s`, a struct settings, samples.
#define SAMPLING_OPTIONS(s)                                                   \
    { 'F',                                                                    \
      NULL,                                                                   \
      "HZ",                                                                   \
      "Samples a second on each CPU (1000)",                                  \
      .number = &(s).options.rate_hz,                                         \
      .min = 1,                                                               \
      .max = SAMPLING_RATE_MAX },                                             \
        { 's',                                                                \
          NULL,                                                               \
          "SOURCES",                                                          \
          "Sample sources (the best one); several, -s A,B, sample side by "   \
          "side",                                                             \
          .take = sampling_take_sources,                                      \
          .arg = &(s).sources },                                              \
        { 'e',                                                                \
          NULL,                                                               \
          "EVENTS",                                                           \
          "Events of a source that counts (cycles); several: -e A,B (names: " \
          "sysinfo system.profile.events) or @GROUP/NAME[:FIELD], a trace "   \
          "point (trace list)",                                               \
          .take = sampling_take_events,                                       \
          .arg = &(s).events },                                               \
        { 'c',                                                                \
          NULL,                                                               \
          "PERIOD",                                                           \
          "A sample every PERIOD events, of such a "                          \
          "source",                                                           \
          .number = &(s).period,                                              \
          .min = 1,                                                           \
          .max = INT32_MAX },                                                 \
        { 0,                                                                  \
          "fixed",                                                            \
          NULL,                                                               \
          "Equal distances between samples; default: random ones, PERIOD or " \
          "1/HZ on average, if the source can",                               \
          .take = sampling_take_fixed,                                        \
          .arg = &(s).options },                                              \
        { 'R',                                                                \
          NULL,                                                               \
          NULL,                                                               \
          "Random ones, or nothing",                                          \
          .take = sampling_take_random,                                       \
          .arg = &(s).options },                                              \
        { 'm',                                                                \
          NULL,                                                               \
          "SECONDS",                                                          \
          "Size of the buffers, in seconds of samples",                       \
          .number = &(s).ring_seconds,                                        \
          .min = 1,                                                           \
          .max = SAMPLING_RING_SECONDS_MAX },                                 \
        { 'g',                                                                \
          NULL,                                                               \
          "[=HOW]",                                                           \
          "The call tree, callers above their callees; in FILE and in JSON "  \
          "each sample with its callers. HOW is dwarf[,SIZE]: with SIZE "     \
          "bytes of the stack (8192), for programs without frame pointers; "  \
          "or lbr: by the CPU's records of calls (sysinfo "                   \
          "system.profile.callers), for such programs, too",                  \
          .take = sampling_take_calls,                                        \
          .arg = &(s).options },                                              \
    {                                                                         \
        'G', NULL, "[=HOW]",                                                  \
            "The inverted call tree: functions above their callers",          \
            .take = sampling_take_calls, .arg = &(s).options,                 \
            .flag = &(s).inverted                                             \
    }
