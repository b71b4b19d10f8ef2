// What a perf.data file holds besides its records, as perf's features: its
// events, and the machine and command that it was recorded with.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <strobe/kbox.h>

#include "perf_format.h"

struct samples;
struct sysinfo_cpu;

// A byte buffer that grows. `failed`: memory ran out and bytes are missing.
struct blob {
    uint8_t *bytes;
    size_t size, room;
    bool failed;
};
void blob_add(struct blob *b, const void *bytes, size_t size);
void blob_add_word(struct blob *b, uint32_t word);
// Adds perf's form of a string: its size, and itself, padded to `align`.
void blob_add_string(struct blob *b, const char *text, uint32_t align);
void blob_free(struct blob *b);

// Makes the attributes of the event that a session samples; with call chains if
// the options ask for them.
void perf_attr_make(struct perf_attr *a, const struct sprofile_options *asked,
                    const struct sprofile_info *info);
// Returns the event's name in its file: what it counts, or its source if it
// samples by time.
const char *perf_event_name(const struct sprofile_info *info);

// One event of a file.
struct perf_event {
    const struct sprofile_options *asked;
    const struct sprofile_info *info;
    struct samples *samples;
};
// An event's id, which each of its samples holds.
#define PERF_EVENT_ID(event) ((event) + 1ull)

// The description of the machine and of the command.
struct perf_environment {
    const char *host, *release, *version, *machine; // as uname reports them
    const char *cpu;                                // its name; "": unknown
    uint32_t cpus;
    const struct sysinfo_cpu *topology; // of each CPU; NULL: unknown
    char *const *command;               // terminated by NULL
    struct perf_date date;              // version 0: unknown
    uint8_t kernel_id[20];
    uint32_t kernel_id_size; // 0: unknown
};

// Appends feature number `feature` (PERF_FEATURE_..., except BUILD_ID) to
// `out`; nothing if the machine does not have it.
void perf_feature_make(struct blob *out, unsigned feature,
                       const struct perf_environment *environment,
                       const struct perf_event *events, uint32_t count);
