// Counts of events that shared the counters, so that each was counted for a
// part of the time only.
#pragma once

#include <strobe/kbox.h>

// The count scaled to the whole time that the event was enabled.
double multiplexed_estimate(const struct sprofile_count *c);
// Half of the estimate's 95 % confidence interval, by random groups: the turns
// are divided into parts, and the estimate's error follows from how much the
// rates of the parts differ. What the program does in no turn of the event is
// not in it. An event that did not happen in the time counted: by the rule of
// three. NAN: counted in one part only, so that no error can be stated.
double multiplexed_margin(const struct sprofile_count *c);
