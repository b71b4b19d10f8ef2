// libstrobe: what Strobe's own programs use besides their C library.
//
// Functions that can fail return -1 (or NULL) and set errno, as libc's do.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <strobe/kbox.h>

#include "lib/build_id.h"
#include "lib/symbols.h"

// --- messages (messages.c) --------------------------------------------------

// Prints "PROGRAM: text" and a newline on standard error.
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
// The same, and ends the program with `status`.
void fail(int status, const char *fmt, ...) __attribute__((noreturn))
__attribute__((format(printf, 2, 3)));

// --- numbers (number.c) ------------------------------------------------------

// A decimal number, digits only. False: it is none, or none from `min` to
// `max`.
bool decimal(const char *text, uint32_t min, uint32_t max, uint32_t *out);

// --- kernel calls (kbox.c) --------------------------------------------------

// A descriptor to the kernel box of a task; close() hangs up. ESRCH, EPERM.
int kbox_connect(uint32_t task);
// Sends a call; call->id becomes the number that its answer will carry.
int ipc_call(int phone, struct ipc_call *call);
// Waits up to `timeout_ms` (-1: for ever) for the next answer to any call of
// this phone. ETIMEDOUT, EINTR.
int ipc_wait(int phone, struct ipc_call *answer, int timeout_ms);
// Why, and what to do.
#define PROFILE_PERMISSION                                                   \
    "this user may profile its own tasks only, and no set-user-id program: " \
    "root may profile everything, and so may the users that the kernel "     \
    "argument profile_users= names"

// What an error of kbox_connect or of profile_begin means for the user, and
// what to do.
const char *kbox_problem(int error);

// --- profile sessions (session.c) -------------------------------------------

#define PROFILE_RINGS_MAX 33 // one of each CPU, and one more

// A session on one task. Give it zeroed to profile_begin.
struct profile_session {
    int phone; // POLLIN: an answer waits
    // The DATA_READ that is under way: its number, and its result once that
    // has come while something else was waited for.
    bool reading, answered;
    uint32_t read_id;
    int32_t read_result;
    struct sprofile_span spans[PROFILE_RINGS_MAX];
};

// Connects to `task` and starts sampling it. ESRCH, EPERM, EINVAL, ENODEV (no
// such source), ENOMEM.
int profile_begin(struct profile_session *s, uint32_t task,
                  const struct sprofile_options *options);
// The same for the whole system but this program.
int profile_begin_system(struct profile_session *s,
                         const struct sprofile_options *options);
// Asks for the next records. One request at a time: while one is under way this
// does nothing.
int profile_request(struct profile_session *s);
// Waits for the answer to it, and calls `take` with each piece of the stream
// where it lies in the kernel's rings: whole records, to be read only, which
// are there until the next request. Gives their bytes, possibly 0. ESHUTDOWN:
// the task has ended and everything has been read; ETIMEDOUT; EINTR.
int profile_answer(struct profile_session *s, int timeout_ms,
                   void (*take)(void *arg, const void *bytes, size_t size),
                   void *arg);
int profile_info(struct profile_session *s, struct sprofile_info *info);
int profile_pause(struct profile_session *s, bool pause);
// A session that counts (include/strobe/kbox.h) instead of sampling. As
// profile_begin; ENODEV cannot be.
int profile_count_begin(struct profile_session *s, uint32_t task,
                        const struct sprofile_count_options *options);
int profile_count_read(struct profile_session *s, struct sprofile_counts *out);
// Ends the session and hangs up.
void profile_end(struct profile_session *s);

// --- programs and their symbols (program.c) ---------------------------------

// The file that a shell would run for `name`, by PATH; to be freed. ENOENT,
// EACCES.
char *program_find(const char *name);
// The program's file of a running task; to be freed. ENOENT, ESRCH.
char *program_of_task(uint32_t task);

// Opens what a task runs, if its file is, or was, at this path: a descriptor,
// or -1.
int program_open_running(uint32_t task, const char *path);

// The bytes of a program's file; of "[vdso]", the kernel's shared object; of
// "[kernel]", the kernel's symbols as nm prints them. To be freed; NULL: errno.
void *program_read(const char *path, size_t *size);

// The build id of the kernel that runs; its size, 0 if it does not tell.
uint32_t kernel_build_id(uint8_t id[BUILD_ID_MAX]);

// The symbols of a program and the memory they live in.
struct program_symbols {
    struct symbols symbols;
    void *image, *table;
};
// Reads them from the file itself or, where it has none, from `PATH.sym` (the
// output of nm); "[vdso]" has those of the kernel's shared object, by offset.
// The result is valid, if empty, whatever is returned: why there are none, in
// words for the user, or NULL when there are some.
const char *program_symbols_load(struct program_symbols *p, const char *path);
void program_symbols_free(struct program_symbols *p);

// --- text tables (table.c) --------------------------------------------------

struct table_column {
    const char *title;
    bool right; // aligned right: numbers
};
struct table {
    const struct table_column *columns;
    unsigned column_count;
    char **cells; // row by row; NULL where memory ran out
    size_t count, room;
};
void table_init(struct table *t, const struct table_column *columns,
                unsigned column_count);
// The next cell, left to right, row after row. What is not printable is shown
// as '?'.
void table_add(struct table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
// Prints titles and rows, each column as wide as its widest cell, and frees
// the cells.
void table_print(struct table *t, FILE *out);
// Makes a name harmless to terminals, in its place: what is neither printable
// ASCII nor UTF-8, and what changes the direction of text, becomes '?'. The
// result is UTF-8. Gives `text`.
char *printable(char *text);
// Writes it so; '?' when there is no memory.
void put_printable(FILE *out, const char *text);
// A string as JSON writes it, with its quotation marks.
void json_string(FILE *out, const char *text, size_t size);
