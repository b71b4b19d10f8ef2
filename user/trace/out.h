// A file that a trace is written to: <strobe/trace_file.h>.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <strobe/trace_file.h>

struct trace_out {
    const char *path;
    int fd;
    int error;                       // of the first write that failed; 0: none
    off_t whole;                     // where the last whole chunk ends
    struct trace_file_thread *known; // that it names; NULL: no memory
    uint32_t known_count;
};

// False, with errno: there is nothing to close.
bool trace_out_open(struct trace_out *o, const char *path);
// The rest writes nothing more once there was an error. First the head, with
// the threads that `first`, an earlier file of this trace or NULL, names, which
// may have ended, and those there are, and the names of functions; then the
// others in any order; then the end.
void trace_out_head(struct trace_out *o, const struct trace_options *options,
                    uint32_t task, char **command,
                    const struct trace_info *info,
                    const struct trace_out *first, bool has_functions);
// What one DATA_READ or TRACE_COPY has stored.
void trace_out_blocks(struct trace_out *o, const void *blocks, size_t bytes);
void trace_out_flight(struct trace_out *o, uint32_t ms,
                      const struct trace_info *info);
// Whole chunks of sensors.
void trace_out_sensors(struct trace_out *o, const void *chunks, size_t bytes);
// Whether the file is whole; if not, says why.
bool trace_out_close(struct trace_out *o, const struct trace_info *info);
