// Declarations shared by the parts of profile.
#pragma once

#include "user/libprofile/header.h"
#include "user/libprofile/reading.h"
#include "user/libprofile/tables.h"
#include "user/libstrobe/strobe.h"

struct settings {
    struct sprofile_options options;    // of the sessions, common to all
    struct event_names sources, events; // -s, -e
    uint32_t ring_seconds;              // -m: capacity of the buffers
    uint32_t period;                    // -c
    uint32_t task;                      // -t; 0: start `command`
    char **command;
    const char *output; // -o: a perf.data file, or NULL
    char **argv;        // the whole command line of profile
    uint32_t rows;      // of the table; 0: all rows
    enum view_by by;
    bool tree, inverted, json, error;
    struct tree_limit tree_limit;
    uint32_t histogram_rows; // -n, -r: a histogram; 0: none
    bool has_range;
    uint32_t range[2]; // -r: the first and the last address
};

// --- bins.c -----------------------------------------------------------------

// Runs s->command and prints the histogram. Returns 0. Ends profile with a
// message on failure.
int run_histogram(const struct settings *s);

// --- repair.c ---------------------------------------------------------------

// Repairs a perf.data file and prints what was done. Ends profile with a
// message on failure.
void repair(const char *path);

// --- diff.c -----------------------------------------------------------------

// `profile diff`: argv[0] is the program's name, followed by the options.
int diff(int argc, char *argv[]);

// --- stat.c -----------------------------------------------------------------

// `profile stat`: argv begins with "stat". Returns the exit status. Ends
// profile with a message on failure.
int run_stat(int argc, char *argv[]);

// --- reconcile.c ------------------------------------------------------------

// `profile reconcile`: argv begins with "reconcile". Returns the exit status.
// Ends profile with a message on failure.
int run_reconcile(int argc, char *argv[]);

// --- waits.c ----------------------------------------------------------------

#define WAITS_CHECK_MS 1000 // a check takes some 18,000 instructions
#define WAITS_MAX 4         // wait channels that are listed
struct waits {
    uint64_t next_ms;
    uint32_t checks, waited, count;
    struct {
        char on[32];
        uint32_t checks;
    } list[WAITS_MAX];
};
// Starts the first interval of WAITS_CHECK_MS.
void waits_begin(struct waits *w);
// If the interval is over: starts the next one, and checks whether all threads
// of the task wait.
void waits_check(struct waits *w, uint32_t task);
// Prints a line if the task waited in at least a tenth of the checks.
void waits_print(const struct waits *w);

// --- run.c: the session -----------------------------------------------------

struct result {
    char *program; // its path; NULL: unknown
    uint32_t task;
    struct events events;
    struct waits waits; // of the task; empty if its children are sampled
    int status;         // the exit status of profile
};
// Both sample r->events, and end profile with a message if they cannot begin.
void run_program(const struct settings *s, struct result *r);
void run_task(const struct settings *s, struct result *r);

// --- report.c, json.c -------------------------------------------------------

void report(const struct settings *s, struct result *r);
void report_json(const struct settings *s, struct result *r);

// State while the report of one event is made.
struct report {
    const struct settings *settings;
    const struct result *result;
    struct event *event;
    struct view view;
};
// Makes the view of an event, and prints which programs have no symbols.
void view_of_event(struct view *v, const struct settings *s, struct event *e);
// Writes the name of a row: "name", "name [kernel]", "[unknown]", "thread 7".
// `arg` is the struct report.
void row_name(char *out, size_t size, const struct view_row *row, void *arg);
