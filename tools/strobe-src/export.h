// Shared by all exporters: a profile with its view by symbol, and the names of
// its frames in other tools.
#pragma once

#include "strobe.h"

struct export
{
    struct profile *profile;          // one event; some formats: several
    const struct view *view;          // by symbol, of all that was read
    const struct view_filter *filter; // samples to export
    const char *program;              // --program, or NULL
    FILE *out;
    const char *out_path; // of `out`; NULL: standard output
    bool inlined;         // show inlined functions
};

// Stacks as text, one a line: PROGRAM;OUTER;...;INNER COUNT.
void export_folded(struct export *e);
// The innermost frame of a chain, and the whole chain: ";OUTER;...;INNER".
void folded_frame(const struct export *e, uint32_t chain);
void folded_stack(const struct export *e, uint32_t chain);
// speedscope's own JSON, of several events: for each event a profile of each
// thread and of each idle CPU.
void export_speedscope(struct export *e);
// gmon.out of one program, for gprof.
void export_gmon(struct export *e);
// pprof's profile.proto, of one event.
void export_pprof(struct export *e);
// A trace for Perfetto, of one event.
void export_perfetto(struct export *e);
// Firefox Profiler's processed profile: a track for each thread, of one event.
void export_firefox(struct export *e);
// For callgrind_annotate and kcachegrind: self cost by line, calls with their
// inclusive cost; of several events.
void export_callgrind(struct export *e);

// The outermost frame of an idle CPU's samples.
#define IDLE_FRAME "[idle]"

// The name of a row's function, its address, or "[unknown]".
void frame_name(char *out, size_t size, const struct export *e, uint32_t row);
// Whether an event (index of the profile's `files`) is sampled by time. Its
// periods are then nanoseconds.
bool frame_is_timed(const struct export *e, uint32_t event);
// The path of a row's image.
const char *frame_file(const struct export *e, uint32_t row);
// The image that `program` names, by path or by the path's last component. If
// it is NULL, the program with most time. Ends the program if there is none.
uint32_t export_image(const struct export *e);
