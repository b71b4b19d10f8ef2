// Access to the sysinfo tree. <strobe/sysinfo.h> describes its nodes.
//
//     size_t count;
//     struct sysinfo_task *tasks = sysinfo_read_task("system.tasks", &count);
//     struct sysinfo_load load;
//     if (sysinfo_get_load("system.load", &load) < 0) ...
//
// On failure functions return -1 (or NULL) and set errno. ENOENT: there is no
// such node (any more); ENOMEM; ENOSYS: the kernel is not Strobe; EPROTO: the
// node does not hold what was requested. All functions are thread-safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <strobe/sysinfo.h>

#include "lib/records.h"

// ---- system calls (sysinfo.c)

// Returns the size of the node's data in bytes, and stores at most `size` bytes
// of them. `size` 0 only queries.
int sysinfo_get_data(const char *path, void *buf, size_t size);
// The same for the children's names, each terminated by a NUL.
int sysinfo_get_keys(const char *path, char *buf, size_t size);
// Returns SYSINFO_TYPE(kind, record or unit).
int sysinfo_get_type(const char *path);

// ---- whole nodes

// Reads all data of the node as a consistent snapshot, even if it grows.
// Appends a NUL. The caller frees the result.
void *sysinfo_read(const char *path, size_t *size);
// The same for a large node: the kernel makes it once, not also to say its
// size.
void *sysinfo_read_large(const char *path, size_t *size);
// Reads the children's names, each terminated by a NUL, and an empty name at
// the end. The caller frees the result.
char *sysinfo_read_keys(const char *path);
int sysinfo_read_value(const char *path, uint64_t *value);
// Reads records of one type (SYSINFO_RECORD_...). Fails (NULL) also if the node
// holds records of another type.
void *sysinfo_read_records(const char *path, uint32_t record, size_t *count);
// Reads the first record of the node. ENOENT if it has none.
int sysinfo_get_record(const char *path, uint32_t record, void *out);

// Typed accessors: struct sysinfo_task *sysinfo_read_task(path, &count), freed
// by the caller, and int sysinfo_get_task(path, &task). All record types have
// them.
#define SYSINFO_ACCESSORS(upper, lower)                                \
    static inline struct sysinfo_##lower *sysinfo_read_##lower(        \
        const char *path, size_t *count)                               \
    {                                                                  \
        return (struct sysinfo_##lower *)sysinfo_read_records(         \
            path, SYSINFO_RECORD_##upper, count);                      \
    }                                                                  \
    static inline int sysinfo_get_##lower(const char *path,            \
                                          struct sysinfo_##lower *out) \
    {                                                                  \
        return sysinfo_get_record(path, SYSINFO_RECORD_##upper, out);  \
    }
SYSINFO_RECORDS(SYSINFO_ACCESSORS)
#undef SYSINFO_ACCESSORS

// ---- printing (sysinfo_print.c)

// Formats a field for people, without its unit: flags as yes or no, fixed point
// with two digits, a missing id as "-". Control characters become "?". Returns
// `buf`.
const char *sysinfo_format(const struct sysinfo_field *f, const void *record,
                           char *buf, size_t size);
// Prints a table. A single record is printed field by field, with units and
// descriptions.
void sysinfo_print(FILE *out, uint32_t record, const void *records,
                   size_t count);
// Prints an array of objects: flags as booleans, fixed point as fractions,
// states as names, a missing id as null.
void sysinfo_print_json(FILE *out, uint32_t record, const void *records,
                        size_t count);
// Prints one object.
void sysinfo_print_json_record(FILE *out, uint32_t record, const void *data);

// ---- for tools (sysinfo_tool.c)

// Converts TSC cycles to milliseconds; `hz` is the TSC frequency (system.cpus).
uint64_t sysinfo_milliseconds(uint64_t cycles, uint64_t hz);
// Converts 16.16 fixed point to hundredths, rounded.
uint32_t sysinfo_hundredths(uint32_t fixed);
// Returns the TSC frequency, or ends the program with a message.
uint64_t sysinfo_frequency(void);
// Prints why reading `path` failed (errno) and what to do, and ends the program
// with status 1.
_Noreturn void sysinfo_fail(const char *path);
// Parses the task id in an option's argument. Returns false after printing an
// error message.
bool sysinfo_parse_task(const char *option, const char *text, uint32_t *id);
// Flushes standard output. Returns the exit status for main: 1 on failure.
int sysinfo_finish(void);
