// The honest header of every report: what was asked, what was done, and all
// that was not seen.
#pragma once

#include <stdio.h>

#include "samples.h"

double percent(double part, double whole);

// Whether it can be known how many samples there should be.
bool header_expects(const struct sprofile_info *info);

// A part of a whole in percent; lines from "Source:" on. `event`: of those
// counted together; `unknown`: samples without a symbol.
void header_print(FILE *out, const struct sprofile_info *info,
                  const struct sprofile_options *asked, const struct samples *s,
                  uint32_t event, uint64_t unknown);
// The same as members of a JSON object, each with a comma behind it.
void header_print_json(FILE *out, const struct sprofile_info *info,
                       const struct sprofile_options *asked,
                       const struct samples *s, uint64_t unknown);
// Which of the events of a run a report is about, in a line; of a single one
// nothing.
void header_print_event(FILE *out, const char *name, uint32_t event,
                        uint32_t count);
// Says on `out`, after `prefix`, which images were hit and have no symbols.
// After a view was made.
void header_complain(FILE *out, const char *prefix, const struct samples *s);
