// Shared by all parts of strobe, the tool on the developer's machine.
//
// A command reads a perf.data file written by profile -o or sprofile -o
// (profile.c), finds the programs' files by their build ids (elves.c), and
// shows or converts libprofile's views of it.
#pragma once

#include "elves.h"
#include "enough.h"
#include "inlines.h"

#include "user/libprofile/header.h"
#include "user/libprofile/perf_read.h"
#include "user/libprofile/tables.h"
#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"

// --- commands, called by main() ---------------------------------------------

int command_report(int argc, char *argv[]);
int command_top(int argc, char *argv[]);
int command_tree(int argc, char *argv[]);
int command_lines(int argc, char *argv[]);
int command_annotate(int argc, char *argv[]);
int command_diff(int argc, char *argv[]);
int command_export(int argc, char *argv[]);
int command_kallsyms(int argc, char *argv[]);
int command_repair(int argc, char *argv[]);
int command_receive(int argc, char *argv[]);
int command_remote(int argc, char *argv[]);
int command_sensors(int argc, char *argv[]);
int command_trace(int argc, char *argv[]);
int command_convert(int argc, char *argv[]);
int command_exact(int argc, char *argv[]);
int command_counts(int argc, char *argv[]);
int command_calls(int argc, char *argv[]);

// --- options shared by several commands -------------------------------------

struct common {
    const char *kernel, *folders; // where to search ELF files
    const char *cpu, *event;
    uint32_t task;
    bool busy, no_inline;
    bool traced; // the command reads traces of calls as well
};
// Entries for tables of options (options.h); `c` is a struct common.
#define FILE_OPTIONS(c)                                                 \
    { 'k', "kernel", "ELF", "The kernel's file (build/kernel.elf)",     \
      .text = &(c).kernel },                                            \
    {                                                                   \
        'd', "dir", "DIRS",                                             \
            "Look here first for programs' files, DIR:DIR:... (build)", \
            .text = &(c).folders                                        \
    }
#define EVENT_OPTION(c)                                            \
    {                                                              \
        'e', "event", "NAME", "The event, of a file with several", \
            .text = &(c).event                                     \
    }
#define FILTER_OPTIONS(c)                                             \
    EVENT_OPTION(c),                                                  \
        { 't', "task", "TASK", "Only this task", .task = &(c).task }, \
        { 'c', "cpu", "CPU", "Only this CPU", .text = &(c).cpu },     \
    {                                                                 \
        'b', "busy", NULL, "Without idle CPUs", .flag = &(c).busy     \
    }

#define INLINE_OPTION(c)                                                  \
    {                                                                     \
        0, "no-inline", NULL, "Inlined functions count as their callers", \
            .flag = &(c).no_inline                                        \
    }

// Parses an option's number. Ends the program with a message if it is not a
// number from `min` to `max`.
uint32_t option_number(const struct tool *tool, const char *option,
                       const char *text, uint32_t min, uint32_t max);
// Returns the filter that the options describe.
struct view_filter common_filter(const struct tool *tool,
                                 const struct common *c);
// Returns the only argument left, a file name. Ends the program with a message
// unless there is exactly one.
const char *one_file(const struct tool *tool, int argc, char *argv[], int at);

// Open and close a command's one output: the file `path`, or standard output if
// it is NULL. The file is written beside `path` and replaces it when it is
// closed: if the command fails before, what was there stays. An error ends the
// program with a message.
FILE *result_open(const char *path);
void result_close(FILE *out, const char *path);

// --- profile.c: a perf.data file that was read ------------------------------

// What executed instructions: a program in a thread, a kernel thread, an
// interrupt.
struct oracle_owner {
    char name[128];
    uint64_t instructions;
};

// What the oracle has counted and checked.
struct oracle_check {
    uint64_t total;   // instructions, as the plugin counted them one by one
    uint64_t sum;     // over all paths
    uint64_t counted; // over all samples
    uint64_t folded;  // paths whose instructions are counted in their callers
    bool ended;       // else the run was ended when the file was last written
    bool flat;        // there are no paths
    // Comparisons with the kernel's clock, which counts instructions.
    uint64_t readings, equal, wrong;
    int64_t off;   // sum of the wrong ones: the clock minus the count
    uint64_t idle; // ns during which all CPUs were halted
    struct oracle_owner *owners; // freed by profile_close
    uint32_t owner_count;
    uint32_t unknown; // programs whose file was not found
};

struct traced; // traced.h

struct profile {
    const char *path;
    struct traced *traced; // of a trace of calls, or NULL
    bool exact;            // from the oracle
    struct oracle_check oracle;
    struct samples samples;
    struct perf_events events;               // all in the file
    struct perf_file files[PERF_EVENTS_MAX]; // one for each event that was read
    uint32_t file_count;
    struct elves elves;
    bool *complained;          // images already complained of, or NULL
    struct timed_sample *list; // all samples, in the order of the file; their
                               // periods are their weights (shares.h)
    size_t count, room;
    struct lines *lines;    // NULL before the first profile_lines
    struct inlines inlines; // inlined functions that are in the chains
};

// Reads one event of a file: the chosen one, else the first, with a message if
// there are several. An error ends the program with a message.
void profile_open(struct profile *p, const char *path, const struct common *c);
// The same for the chosen event, else for all. `event` of a count or sample is
// an index of `files`.
void profile_open_all(struct profile *p, const char *path,
                      const struct common *c);
// Reads each event of a file separately, or only the chosen one, and calls
// `show`. Prints an empty line between two events. Errors: as above.
void profile_each(const char *path, const struct common *c,
                  void (*show)(struct profile *p, void *arg), void *arg);
void profile_close(struct profile *p);
// The number of images other than those of inlined functions, which come last.
uint32_t profile_images(const struct profile *p);
// Functions and source lines of its places (lines.h), created on first use.
struct lines *profile_lines(struct profile *p);
// Prints the header of a report for `f`, one of `files`. `v` is the view that
// the report shows.
void profile_header(FILE *out, const struct profile *p,
                    const struct perf_file *f, const struct view *v);
// The profiled command, or if the file has none the path of the file.
const char *profile_title(const struct profile *p);
// Reports on standard error which files were not found, each once. Call it
// after making a view, which loads the images.
void profile_complain(struct profile *p);
// Reports on standard error if the samples were recorded without callers.
void profile_complain_calls(const struct profile *p);
// The name of a task while it ran that program (programs.h).
const char *profile_program_name(const struct profile *p, uint32_t task,
                                 uint32_t program);
// As view_make and tree_make, but lack of memory ends the program. profile_view
// also reports if no sample passes the filter.
void profile_view(struct view *v, struct profile *p, enum view_by by,
                  const struct view_filter *filter);
void profile_tree(struct tree *t, struct profile *p, const struct view *v,
                  const struct view_filter *filter, bool inverted);

// A row's name: "name", "name [kernel]", "name [/bin/lua]". `alone`: the image
// whose name is left out, or IMAGE_NONE.
void row_name(char *out, size_t size, const struct profile *p,
              const struct view_row *row, uint32_t alone);
// A profile and its profile_only_image, for the functions of struct naming.
struct named {
    const struct profile *profile;
    uint32_t alone;
};
// Whether `name` is the image's path or its last component.
bool image_is_called(const struct image *m, const char *name);
// The image of the tasks of all samples, idle ones left out; IMAGE_NONE if
// there are several. Reads all samples.
uint32_t profile_only_image(const struct profile *p);

// --- line_report.c ----------------------------------------------------------

// The table by source line, of `limit` rows (0: all). `v` is by symbol.
void print_lines(struct profile *p, const struct view *v,
                 const struct view_filter *filter, uint32_t limit);
