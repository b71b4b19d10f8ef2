// user/libprofile's readers and repair of perf.data: reads a recording for each
// of its events, repairs it and reads it again.
// link: user/libprofile/shares.c user/libprofile/images_read.c
// link: user/libprofile/known_threads.c user/libprofile/output.c
// link: user/libprofile/perf_features.c user/libstrobe/core_clock.c
// link: user/libprofile/perf_repair.c
// link: user/libprofile/mapping.c user/libprofile/perf_read.c
// link: user/libprofile/perf_walk.c user/libprofile/perf_programs.c
// link: user/libprofile/samples.c user/libprofile/stream.c
// link: user/libprofile/chains.c user/libprofile/images.c
// link: user/libprofile/programs.c user/libprofile/user_chain.c
// link: user/libstrobe/table.c
// link: user/libprofile/perf_topology.c
// link: user/libprofile/task_times.c
#define _GNU_SOURCE
#include "host.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "user/libprofile/perf_read.h"
#include "user/libprofile/perf_repair.h"

static u64 seen;
static const struct samples *reading;

static void *no_file(const char *path UNUSED, size_t *size UNUSED)
{
    return NULL;
}

static void see(void *arg UNUSED, const struct timed_sample *s)
{
    seen++;
    REQUIRE(s->image < reading->images.count && s->mode < MODES);
    REQUIRE(s->chain < reading->chains.count);
}

// Reads one event's samples. Returns the problem if the file cannot be read.
static const char *read_event(const u8 *bytes, size_t size, u32 event,
                              struct perf_file *out)
{
    static struct samples s;
    *out = (struct perf_file){ .event = event, .sample = see };
    seen = 0;
    REQUIRE(samples_init(&s, no_file) == 0);
    reading = &s;
    const char *problem = perf_read(out, 1, &s, bytes, size);
    if (!problem)
        REQUIRE(seen == out->samples && s.total + s.uncounted == seen);
    REQUIRE(memchr(out->command, 0, sizeof(out->command)));
    REQUIRE(memchr(out->version, 0, sizeof(out->version)));
    samples_free(&s);
    return problem;
}

static u64 read_all(const u8 *bytes, size_t size)
{
    struct perf_events events;
    struct perf_file file;
    const char *problem = perf_read_events(&events, bytes, size);
    u64 samples = 0;
    if (problem) {
        REQUIRE(read_event(bytes, size, 0, &file));
        return 0;
    }
    REQUIRE(events.count >= 1 && events.count <= PERF_EVENTS_MAX);
    for (u32 i = 0; i < events.count; i++) {
        REQUIRE(!read_event(bytes, size, i, &file));
        samples += seen;
    }
    return samples;
}

static void repair(const u8 *bytes, size_t size, u64 samples)
{
    int fd = memfd_create("perf", 0);
    struct perf_repaired first = { 0 }, second = { 0 };
    REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    if (!perf_repair(fd, &first)) {
        REQUIRE(!perf_repair(fd, &second) && !second.changed);
        size_t now = (size_t)lseek(fd, 0, SEEK_END);
        u8 *repaired = malloc(now + !now);
        REQUIRE(repaired && pread(fd, repaired, now, 0) == (ssize_t)now);
        REQUIRE(read_all(repaired, now) == samples);
        free(repaired);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    u8 *bytes = guarded(data, size);
    repair(bytes, size, read_all(bytes, size));
    free(bytes);
    return 0;
}
