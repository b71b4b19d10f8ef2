// The sysinfo tree for programs: <strobe/sysinfo.h> says what there is.
//
//     size_t count;
//     struct sysinfo_task *tasks = sysinfo_read_task("system.tasks", &count);
//     struct sysinfo_load load;
//     if (sysinfo_get_load("system.load", &load) < 0) ...
//
// Functions return -1 (or NULL) and set errno: ENOENT there is no such node (or
// no more), ENOMEM, ENOSYS the kernel is not Strobe, EPROTO the node does not
// hold what was asked for. Any thread may call them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <strobe/sysinfo.h>

#include "lib/records.h"

// ---- the calls themselves (sysinfo.c)

// Bytes the node holds; min(size, that) of them are stored. `size` 0 asks only.
int sysinfo_get_data(const char *path, void *buf, size_t size);
// The same with the children's names, each ended by a NUL.
int sysinfo_get_keys(const char *path, char *buf, size_t size);
// SYSINFO_TYPE(kind, record or unit).
int sysinfo_get_type(const char *path);

// ---- whole nodes

// All that the node holds, as of one instant however it grows; a NUL follows.
// To be freed.
void *sysinfo_read(const char *path, size_t *size);
// The children's names, each ended by a NUL, an empty one behind the last. To
// be freed.
char *sysinfo_read_keys(const char *path);
int sysinfo_read_value(const char *path, uint64_t *value);
// Records of this type (SYSINFO_RECORD_...); NULL also when they are of
// another.
void *sysinfo_read_records(const char *path, uint32_t record, size_t *count);
// The first record of the node; ENOENT when it has none.
int sysinfo_get_record(const char *path, uint32_t record, void *out);

// Typed: struct sysinfo_task *sysinfo_read_task(path, &count), to be freed, and
// int sysinfo_get_task(path, &task); likewise for all other record types.
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

// A field as people read it: flags yes or no, fixed point with two digits, ids
// "-" where there is none; without its unit. Control characters become "?".
// Returns `buf`.
const char *sysinfo_format(const struct sysinfo_field *f, const void *record,
                           char *buf, size_t size);
// A table; one record is printed field by field, with units and meanings.
void sysinfo_print(FILE *out, uint32_t record, const void *records,
                   size_t count);
// An array of objects; flags are booleans, fixed point fractions, states names,
// and ids null where there is none.
void sysinfo_print_json(FILE *out, uint32_t record, const void *records,
                        size_t count);
// One object.
void sysinfo_print_json_record(FILE *out, uint32_t record, const void *data);

// ---- for tools (sysinfo_tool.c)

// Cycles of the TSC as milliseconds; `hz` its frequency (system.cpus).
uint64_t sysinfo_milliseconds(uint64_t cycles, uint64_t hz);
// 16.16 fixed point in hundredths, rounded.
uint32_t sysinfo_hundredths(uint32_t fixed);
// TSC frequency, or ends the program with a message.
uint64_t sysinfo_frequency(void);
// Says why reading `path` failed (errno) and what to do, and ends the program
// with status 1.
_Noreturn void sysinfo_fail(const char *path);
// The task id in an option's argument. false: it is none (said so).
bool sysinfo_parse_task(const char *option, const char *text, uint32_t *id);
// Writes out what was printed; the status for main: 1 when that failed.
int sysinfo_finish(void);
