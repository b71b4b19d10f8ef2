// What the parts of strobe, the tool on the developer's machine, share.
//
// A command takes a perf.data file that profile -o or sprofile -o has written
// (profile.c), finds the programs' files by their build ids (elves.c), and
// shows or converts what libprofile makes of it.
#pragma once

#include "elves.h"
#include "inlines.h"

#include "user/libprofile/header.h"
#include "user/libprofile/perf_read.h"
#include "user/libprofile/tables.h"
#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"

// --- the commands, as main() calls them -------------------------------------

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
int command_convert(int argc, char *argv[]);

// --- options that several commands have -------------------------------------

struct common {
    const char *kernel, *folders; // where ELF files are looked for
    const char *cpu, *event;
    uint32_t task;
    bool busy, no_inline;
};
// For the tables of options.h; `c` is a struct common.
#define FILE_OPTIONS(c)                                                 \
    { 'k', "kernel", "ELF", "The kernel's file (build/kernel.elf)",     \
      .text = &(c).kernel },                                            \
    {                                                                   \
        'd', "dir", "DIRS",                                             \
            "Look here first for programs' files, DIR:DIR:... (build)", \
            .text = &(c).folders                                        \
    }
#define EVENT_OPTION(c)                                                  \
    {                                                                    \
        'e', "event", "NAME", "Of a file with several events, this one", \
            .text = &(c).event                                           \
    }
#define FILTER_OPTIONS(c)                                             \
    EVENT_OPTION(c),                                                  \
        { 't', "task", "TASK", "Only this task", .task = &(c).task }, \
        { 'c', "cpu", "CPU", "Only this CPU", .text = &(c).cpu },     \
    {                                                                 \
        'b', "busy", NULL, "Without idle CPUs", .flag = &(c).busy     \
    }

#define INLINE_OPTION(c)                                       \
    {                                                          \
        0, "no-inline", NULL,                                  \
            "Inlined functions count as the ones around them", \
            .flag = &(c).no_inline                             \
    }

// A number from an option; what is wrong is said, and ends the program.
uint32_t option_number(const struct tool *tool, const char *option,
                       const char *text, uint32_t min, uint32_t max);
// Which samples the options want.
struct view_filter common_filter(const struct tool *tool,
                                 const struct common *c);
// Checks that one file, and no more, is left of the arguments: its name.
const char *one_file(const struct tool *tool, int argc, char *argv[], int at);

// Where a command writes to: the file of `path`, or without one (NULL) standard
// output. What is wrong is said, and ends the program.
FILE *result_open(const char *path);
void result_close(FILE *out, const char *path);

// --- profile.c: a file that was read ----------------------------------------

struct profile {
    const char *path;
    struct samples samples;
    struct perf_events events;               // that are in the file
    struct perf_file files[PERF_EVENTS_MAX]; // of those that were read
    uint32_t file_count;
    struct elves elves;
    bool *told;                // which images there were complaints of, or NULL
    struct timed_sample *list; // each sample, as the file has them
    size_t count, room;
    struct lines *lines;    // once asked for, or NULL
    struct inlines inlines; // what was inlined is in the chains, too
};

// Reads a file: the event that is chosen or, which it says if there are
// several, the first. Ends the program, with a message, when that cannot be.
void profile_open(struct profile *p, const char *path, const struct common *c);
// Likewise: the event that is chosen, or all of them together, which the counts
// and samples tell apart by their numbers among `files`.
void profile_open_all(struct profile *p, const char *path,
                      const struct common *c);
// Calls `show` with each event of a file, or the one that is chosen, and a line
// between two. Likewise.
void profile_each(const char *path, const struct common *c,
                  void (*show)(struct profile *p, void *arg), void *arg);
void profile_close(struct profile *p);
// How many of its images, which come first, are those of files.
uint32_t profile_images(const struct profile *p);
// Functions and source lines of its places (lines.h), asked for once for all.
struct lines *profile_lines(struct profile *p);
// The lines that stand above every report, of one of `files`. `v` is the view
// that is shown.
void profile_header(FILE *out, const struct profile *p,
                    const struct perf_file *f, const struct view *v);
// What was profiled: the command, or if that is not told the file.
const char *profile_title(const struct profile *p);
// Says on standard error which files were not found, of each once. After a view
// was made.
void profile_complain(struct profile *p);
// Says it when the samples have no callers, to show calls by.
void profile_complain_calls(const struct profile *p);
// What a task was called when it ran that program (programs.h).
const char *profile_program_name(const struct profile *p, uint32_t task,
                                 uint32_t program);
// The same as view_make and tree_make; no memory ends the program. That a
// filter of options leaves no sample is said.
void profile_view(struct view *v, struct profile *p, enum view_by by,
                  const struct view_filter *filter);
void profile_tree(struct tree *t, struct profile *p, const struct view *v,
                  const struct view_filter *filter, bool inverted);

// What a row is called: "name", "name [kernel]", "name [/bin/lua]". `alone`:
// the image that needs no name, or IMAGE_NONE.
void row_name(char *out, size_t size, const struct profile *p,
              const struct view_row *row, uint32_t alone);
// What a row by thread, CPU or task is called: "task 7 lua".
void key_text(char *out, size_t size, const struct profile *p, enum view_by by,
              const struct view_row *row);
// Whether an image is called so, by its path or the path's last part.
bool image_is_called(const struct image *m, const char *name);
// The image of all programs' samples; IMAGE_NONE if there are several.
uint32_t profile_only_image(const struct profile *p);

// --- line_report.c ----------------------------------------------------------

// The table by source line, of `limit` rows (0: all). `v` is by symbol.
void print_lines(struct profile *p, const struct view *v,
                 const struct view_filter *filter, uint32_t limit);
