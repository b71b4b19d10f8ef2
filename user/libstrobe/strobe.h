// libstrobe: the library that Strobe's own programs use besides libc.
//
// On failure functions return -1 (or NULL) and set errno, as in libc.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <strobe/abi.h>
#include <strobe/kbox.h>
#include <strobe/trace.h>

#include "lib/build_id.h"
#include "user/libread/symbols.h"

// --- messages (messages.c) --------------------------------------------------

// Prints "PROGRAM: text" and a newline on standard error.
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
// The same, then ends the program with `status`.
void fail(int status, const char *fmt, ...) __attribute__((noreturn))
__attribute__((format(printf, 2, 3)));

// --- numbers (number.c) ------------------------------------------------------

// Parses a decimal number, digits only. Returns false if it is invalid, or not
// from `min` to `max`.
bool decimal(const char *text, uint32_t min, uint32_t max, uint32_t *out);

// --- kernel calls (kbox.c) --------------------------------------------------

// Returns a descriptor (phone) of a task's kernel box; close() hangs up. ESRCH,
// EPERM.
int kbox_connect(uint32_t task);
// Sends a call. Sets call->id to the number that its answer will have.
int ipc_call(int phone, struct ipc_call *call);
// Waits up to `timeout_ms` (-1: no limit) for the next answer to any call on
// this phone. ETIMEDOUT, EINTR.
int ipc_wait(int phone, struct ipc_call *answer, int timeout_ms);
// The message for EPERM: the reason, and what to do.
#define PROFILE_PERMISSION                                                   \
    "this user may profile its own tasks only, and no set-user-id program: " \
    "root may profile everything, and so may the users that the kernel "     \
    "argument profile_users= names"

// Returns the message for an error of kbox_connect or profile_begin, with what
// the user can do.
const char *kbox_problem(int error);

// --- profile sessions (session.c) -------------------------------------------

#define PROFILE_RINGS_MAX (STROBE_CPUS_MAX + 1) // one for each CPU, one more

// A session on one task. Zeroed before profile_begin.
struct profile_session {
    int phone; // POLLIN: an answer is available
    // `reading`: a DATA_READ is pending, with this id. `answered`: its result
    // has arrived and was not yet taken.
    bool reading, answered;
    uint32_t read_id;
    int32_t read_result;
    struct sprofile_span spans[PROFILE_RINGS_MAX];
};

// Connects to `task` and starts sampling it. ESRCH, EPERM, EINVAL, ENODEV (no
// such source), ENOMEM.
int profile_begin(struct profile_session *s, uint32_t task,
                  const struct sprofile_options *options);
// The same for the whole system except the calling program.
int profile_begin_system(struct profile_session *s,
                         const struct sprofile_options *options);
// Requests the next records. Does nothing if a request is pending already.
int profile_request(struct profile_session *s);
// Waits for the answer to the request, and calls `take` with each piece of the
// stream in place in the kernel's rings: whole records, mapped read-only, valid
// until the next request. Returns the number of bytes, possibly 0. ESHUTDOWN:
// the task has ended and everything was read; ETIMEDOUT; EINTR.
int profile_answer(struct profile_session *s, int timeout_ms,
                   void (*take)(void *arg, const void *bytes, size_t size),
                   void *arg);
int profile_info(struct profile_session *s, struct sprofile_info *info);
int profile_pause(struct profile_session *s, bool pause);
// Begins a session that counts (include/strobe/kbox.h) instead of sampling.
// Errors as of profile_begin, except ENODEV.
int profile_count_begin(struct profile_session *s, uint32_t task,
                        const struct sprofile_count_options *options);
int profile_count_read(struct profile_session *s, struct sprofile_counts *out);
// Begins a trace of events (include/strobe/trace.h). EBUSY, EINVAL, ESRCH,
// EPERM, EUSERS, ENOMEM.
int profile_trace_begin(struct profile_session *s,
                        const struct trace_options *options);
// Requests the next blocks, into `buffer`, which is in use until the answer.
// Does nothing if a request is pending already.
int profile_trace_request(struct profile_session *s, void *buffer, size_t size);
// Waits for the answer. Returns the number of bytes, possibly 0. ESHUTDOWN: the
// task has ended and everything was read; ETIMEDOUT; EINTR.
int profile_trace_answer(struct profile_session *s, int timeout_ms);
// Copies what a flight has now; it goes on. Returns the number of bytes.
// EINVAL: it is no flight, or is over; ENOSPC.
int profile_trace_copy(struct profile_session *s, void *buffer, size_t size);
int profile_trace_info(struct profile_session *s, struct trace_info *info);
// Ends the session and hangs up.
void profile_end(struct profile_session *s);

// --- programs and their symbols (program.c) ---------------------------------

// Returns the file that a shell would run for `name`, found by PATH; the caller
// frees it. ENOENT, EACCES.
char *program_find(const char *name);
// Returns the path of a running task's program; the caller frees it. ENOENT,
// ESRCH.
char *program_of_task(uint32_t task);

// Opens the program that a task runs, if its path is or was `path`. Returns a
// descriptor, or -1.
int program_open_running(uint32_t task, const char *path);

// Reads a program's file. "[vdso]" reads the kernel's shared object, "[kernel]"
// the kernel's symbols as nm prints them. Returns the bytes, which the caller
// frees, or NULL and sets errno.
void *program_read(const char *path, size_t *size);

// Copies the build id of the running kernel. Returns its size, 0 if unknown.
uint32_t kernel_build_id(uint8_t id[BUILD_ID_MAX]);

// The symbols of a program, and the memory that holds them.
struct program_symbols {
    struct symbols symbols;
    void *image, *table;
};
// Loads them from the file itself or, if it has none, from `PATH.sym` (the
// output of nm). "[vdso]" loads those of the kernel's shared object; addresses
// are offsets. Returns NULL, or a message for the user that says why there are
// no symbols. `*p` is valid, if empty, in every case.
const char *program_symbols_load(struct program_symbols *p, const char *path);
void program_symbols_free(struct program_symbols *p);

// --- text tables (table.c) --------------------------------------------------

struct table_column {
    const char *title;
    bool right; // right-aligned: numbers
};
struct table {
    const struct table_column *columns;
    unsigned column_count;
    char *cells;       // by row, each with its NUL
    size_t used, room; // bytes
    size_t count;      // cells
};
void table_init(struct table *t, const struct table_column *columns,
                unsigned column_count);
// Adds the next cell, left to right, row by row. Unprintable characters are
// replaced by '?'.
void table_add(struct table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void table_add_text(struct table *t, const char *text);
void put_blanks(FILE *out, int count); // none if it is negative
// Write a number as %u and %.*f do, `digits` 0 to 2, but in a tenth of the
// time, for tables of thousands. From 2^31 / 10^digits on, it is as %.*e does.
// Return where the NUL is: NUMBER_SIZE bytes are enough.
#define NUMBER_SIZE 32
char *put_decimal(char *out, uint64_t value);
// Writes the digits so that they end before `end`. Returns the first one.
char *put_decimal_before(char *end, uint64_t value);
char *put_fixed(char *out, double value, unsigned digits);
// Prints titles and rows, each column as wide as its widest cell, then frees
// the cells.
void table_print(struct table *t, FILE *out);
// Sanitises a name for terminals, in place. Bytes that are neither printable
// ASCII nor UTF-8, and characters that change the direction of text, become
// '?'. The result is UTF-8. Returns `text`.
char *printable(char *text);
// Prints a sanitised copy of `text`, or '?' when out of memory.
void put_printable(FILE *out, const char *text);
// Prints a JSON string, with its quotation marks.
void json_string(FILE *out, const char *text, size_t size);
