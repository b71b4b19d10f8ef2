// What the exporters share: a profile with its view by symbol, and what its
// frames are called in other tools.
#pragma once

#include "strobe.h"

struct export
{
    struct profile *profile;          // of one event or, where told, of several
    const struct view *view;          // by symbol, of all that was read
    const struct view_filter *filter; // which samples
    const char *program;              // --program, or NULL
    FILE *out;
    const char *out_path; // of `out`; NULL: standard output
    bool inlined;         // what was inlined is to be shown
};

// Stacks as text, one a line: TASK;OUTER;...;INNER COUNT.
void export_folded(struct export *e);
// speedscope's own JSON: a profile for each thread, one for each idle CPU, and
// that of each event.
void export_speedscope(struct export *e);
// gmon.out of one program, for gprof.
void export_gmon(struct export *e);
// pprof's profile.proto, of one event.
void export_pprof(struct export *e);
// A trace for Perfetto, of one event.
void export_perfetto(struct export *e);
// Firefox Profiler's processed profile: a track for each thread, of one event.
void export_firefox(struct export *e);
// For callgrind_annotate and kcachegrind: costs by line, calls with what they
// cost; of several events.
void export_callgrind(struct export *e);

// Where the time of a CPU that has nothing to do goes: the outermost frame of
// its samples.
#define IDLE_FRAME "[idle]"

// The name of a row's function, or its address.
void frame_name(char *out, size_t size, const struct export *e, uint32_t row);
// Whether an event, of those that were read, is taken by time: its periods are
// nanoseconds.
bool frame_is_timed(const struct export *e, uint32_t event);
// The path of a row's image.
const char *frame_file(const struct export *e, uint32_t row);
// The image that `program` names, by path or by the path's last part; without
// a name the one with most samples. None ends the program.
uint32_t export_image(const struct export *e);
