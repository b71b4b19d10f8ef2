// Seals a perf.data file: writes the size of its whole records to the header,
// and, after the records, the features that the records hold. This is the
// writer's last step, and also repairs a file that was truncated.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct perf_repaired {
    bool changed;     // false: the file was whole
    uint64_t records; // in it
    uint64_t samples; // of these
    uint64_t cut;     // bytes after the last whole record, removed
};

// `fd` is open for reading and writing. Returns NULL, or an error message. Then
// the file is unchanged or, after a write error, can be repaired again.
const char *perf_repair(int fd, struct perf_repaired *r);
// Prints a line that says what was done.
void perf_repaired_print(FILE *out, const char *path,
                         const struct perf_repaired *r);
