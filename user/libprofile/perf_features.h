// What a perf.data file tells besides its records: its event, and the machine
// and command it comes from, as perf's features.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <strobe/kbox.h>

#include "perf_format.h"

struct samples;

// Bytes that grow. `failed`: memory was out, and some are missing.
struct blob {
    uint8_t *bytes;
    size_t size, room;
    bool failed;
};
void blob_add(struct blob *b, const void *bytes, size_t size);
void blob_free(struct blob *b);

// The event whose samples a session takes; with chains if these were asked for.
void perf_attr_make(struct perf_attr *a, const struct sprofile_options *asked,
                    const struct sprofile_info *info);
// What it is called among the others of its file: what it counts, or the source
// of what is taken by time.
const char *perf_event_name(const struct sprofile_info *info);

// One of the events of a file, by number.
struct perf_event {
    const struct sprofile_options *asked;
    const struct sprofile_info *info;
    struct samples *samples;
};
// An event's id, in each of its samples.
#define PERF_EVENT_ID(event) ((event) + 1ull)

// What is told of the machine and of the command.
struct perf_facts {
    const char *host, *release, *version, *machine; // as uname has them
    uint32_t cpus;
    char *const *command; // ends with NULL
    uint8_t kernel_id[20];
    uint32_t kernel_id_size; // 0: not known
};

// Feature number `feature` (PERF_FEATURE_..., not BUILD_ID) is added to `out`.
void perf_feature_make(struct blob *out, unsigned feature,
                       const struct perf_facts *facts,
                       const struct perf_event *events, uint32_t count);
