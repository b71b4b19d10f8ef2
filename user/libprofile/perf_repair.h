// Seals a perf.data file: makes its header tell how many of its bytes are whole
// records, and puts the features behind them, made from what the records say.
// The writer's last step, and the repair of a file that was cut off.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct perf_repaired {
    bool changed;     // false: the file was whole
    uint64_t records; // in it
    uint64_t samples; // of these
    uint64_t cut;     // bytes behind the last whole record that are gone
};

// `fd` is open for reading and writing. NULL, or why it cannot be done; then
// the file is as it was, or, on an error of writing, can be repaired again.
const char *perf_repair(int fd, struct perf_repaired *r);
// Says what was done, on a line.
void perf_repaired_print(FILE *out, const char *path,
                         const struct perf_repaired *r);
