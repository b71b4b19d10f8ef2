// What `trace report` and `trace summary` print, in the guest and on the host.
// Only libc is used.
#pragma once

#include "file.h"

struct trace_choice {
    bool by_thread, by_cpu; // only of this thread, of this CPU
    uint32_t thread, cpu;
};

// Both begin with the header: what was recorded, what is missing and where
// from, what it cost. Return NULL, or what is wrong with the file: what
// precedes that is printed.
const char *trace_report(FILE *out, struct trace_file *f,
                         const struct trace_choice *choice);
const char *trace_summary(FILE *out, struct trace_file *f);

// The header. Its counts are those of the file's events, which were read.
struct lives;
void trace_header(FILE *out, const struct trace_file *f, uint64_t cycles,
                  const struct lives *lives);
// The fields of an event, as text.
void trace_event_text(FILE *out, const struct trace_file *f,
                      const struct trace_event *e);
