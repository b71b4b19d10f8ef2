// Copies what sensors have into chunks of <strobe/sensor_recording.h>: the
// values of scalars and histograms at each sample, all events of lists and
// rings. It only reads the sensors: what it is too slow for is counted in the
// chunks, before the event that follows.
//
// `sensors record` and `trace record` write such chunks.
#pragma once

#include "sensor_print.h"

#include <strobe/sensor_recording.h>

// One sensor. Fields are the recorder's, but for those that say otherwise.
struct sensor_source {
    char *path;          // may be read
    uint32_t owner;      // of one that recorder_find() found
    bool open;           // may be read
    const char *problem; // may be read: why recorder_find() did not open it
    bool done;           // closed, and all of it was recorded
    bool broken; // may be read: its owner changed its header; no more is taken
    uint32_t number; // in the chunks
    struct sensor_file file;
    union {
        struct sensor_cursor list;
        struct sensor_ring_cursor ring;
    };
    bool newer;        // than the recording
    uint64_t misdated; // spoilt by their time
    bool sampled;      // `value` is the last one
    uint64_t value;    // a scalar's
    struct sensor_totals totals;
    struct sensor_cell *cells; // a histogram's, at the last sample
    struct sensor_cell *row;   // of one row
    struct recording_cell *changed;
    uint64_t lost, spoilt; // may be read: so far
};

struct sensor_recorder {
    // Takes the bytes of the chunks, piece by piece.
    void (*write)(void *arg, const void *bytes, size_t size);
    void *arg;
    // ns since the machine's start. Of lists and rings that were created later
    // all numbers are counted, from 0 on; of others what is there is recorded.
    uint64_t begun_ns;
    uint64_t since;    // TSC: older events are left out; 0: all are wanted
    bool changes_only; // of scalars and histograms: only what has changed
    // The rest is the recorder's; `sources` may be read.
    struct sensor_source **sources;
    uint32_t count, numbered;
    bool scanned; // recorder_find() was called
};

#define RECORDER_INTERVAL_NS 100000000u // between samples, unless one is given

// ns since the machine's start.
uint64_t recorder_now_ns(void);
// For struct tool_option's `take`: sets a uint64_t, `ns`, to the seconds with
// up to nine decimals, from 1 ms to 3600 s. Returns NULL, or what is wrong.
const char *recorder_take_duration(void *ns, char *text);

// Adds a sensor, which may not exist yet. NULL: no memory.
struct sensor_source *recorder_add(struct sensor_recorder *r, const char *path);
// Opens it, if it is there. `awaited`: a command is to create it; one that is
// closed is that of an earlier program. Returns why not, or NULL.
const char *recorder_open(struct sensor_recorder *r, struct sensor_source *s,
                          bool awaited);
// Adds and opens what `system.sensors` lists and one of `patterns`, which are
// separated by commas, names: paths of sensors or folders, with or without
// /sensors/, with `*` and `?`. What is closed at the first call is left out.
// Returns how many were added, or -1: no memory.
int recorder_find(struct sensor_recorder *r, const char *patterns);
// Records all that are open. False: all of these are done.
bool recorder_sample(struct sensor_recorder *r);
// Begins anew, for another file: with all sensors that are open, and of lists
// and rings with the oldest event that is there since `since`.
void recorder_restart(struct sensor_recorder *r, uint64_t since);
// Closes all sensors, and frees their memory.
void recorder_free(struct sensor_recorder *r);
