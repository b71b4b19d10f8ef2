// The honest header of every report: what was asked, what was done, and all
// that was not seen.
#pragma once

#include <stdio.h>

#include "samples.h"

double percent(double part, double whole);

// A part of a whole in percent; lines from "Source:" on. `unknown`: samples
// without a symbol.
void header_print(FILE *out, const struct sprofile_info *info,
                  const struct sprofile_options *asked, const struct samples *s,
                  uint64_t unknown);
// Says on `out`, after `prefix`, which images were hit and have no symbols.
// After a view was made.
void header_complain(FILE *out, const char *prefix, const struct samples *s);
