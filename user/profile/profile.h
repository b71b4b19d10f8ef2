// What the parts of profile share.
#pragma once

#include "user/libprofile/header.h"
#include "user/libprofile/reading.h"
#include "user/libprofile/tables.h"
#include "user/libstrobe/strobe.h"

struct settings {
    struct sprofile_options options;    // what is asked of the kernel, for all
    struct event_names sources, events; // -s, -e
    uint32_t seconds;                   // -m: of data that the buffers hold
    uint32_t task;                      // -t; 0: start `command`
    char **command;
    const char *output; // -o: a perf.data file, or NULL
    char **argv;        // all that profile was called with
    uint32_t rows;      // of the table; 0: all
    enum view_by by;
    bool tree, inverted, json;
    struct tree_limit tree_limit;
    uint32_t histogram_rows; // -n, -r: a histogram; 0: none
    bool has_range;
    uint32_t range[2]; // -r: both ends
};

// --- child.c: the program that is started -----------------------------------

struct child {
    char *path; // to be freed
    int pid, go_fd, status_fd;
};
// Makes a process that will become the program, and ignores ^C from now on.
// Ends the program itself, with a message, when that cannot be.
void child_start(struct child *c, char **command);
void child_go(struct child *c);
// Waits for its end: its status as a shell would have it. Likewise, if it could
// not be run.
int child_end(struct child *c);

// --- bins.c -----------------------------------------------------------------

// Starts s->command and prints the histogram: 0. Likewise.
int run_histogram(const struct settings *s);

// --- repair.c ---------------------------------------------------------------

// Makes a perf.data file whole and says what it did. Ends the program, with a
// message, when that cannot be.
void repair(const char *path);

// --- diff.c -----------------------------------------------------------------

// `profile diff`: argv[0] is the program's name, its options follow.
int diff(int argc, char *argv[]);

// --- stat.c -----------------------------------------------------------------

// profile stat: argv from "stat" on. Its exit status. Likewise.
int run_stat(int argc, char *argv[]);

// --- waits.c ----------------------------------------------------------------

#define WAITS_LOOK_MS 1000 // a look takes some 18,000 instructions
#define WAITS_MAX 4        // different ones that are listed
struct waits {
    uint64_t next_ms;
    uint32_t looks, waited, count;
    struct {
        char on[32];
        uint32_t looks;
    } list[WAITS_MAX];
};
// WAITS_LOOK_MS begin.
void waits_begin(struct waits *w);
// When they are over: begins them again, and looks whether a thread of the task
// runs.
void waits_look(struct waits *w, uint32_t task);
// A line, if it waited for a tenth of the time or more.
void waits_print(const struct waits *w);

// --- run.c: the session -----------------------------------------------------

struct result {
    char *program; // its path, or NULL if not known
    uint32_t task;
    struct events events;
    struct waits waits; // of the task; empty with its children
    int status;         // what profile is to exit with
};
// Both sample r->events, and end the program themselves, with a message, when
// they cannot begin.
void run_program(const struct settings *s, struct result *r);
void run_task(const struct settings *s, struct result *r);

// --- report.c, json.c -------------------------------------------------------

void report(const struct settings *s, struct result *r);
void report_json(const struct settings *s, struct result *r);

// One event's report while it is made.
struct report {
    const struct settings *settings;
    const struct result *result;
    struct event *event;
    struct view view;
};
// What it shows; which programs have no symbols is said.
void view_of_event(struct view *v, const struct settings *s, struct event *e);
// What a row is called: "name", "name [kernel]", "[unknown]", "thread 7". `arg`
// is the struct report.
void row_name(char *out, size_t size, const struct view_row *row, void *arg);
