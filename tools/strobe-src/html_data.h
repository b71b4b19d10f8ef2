// The data of the flame graph page, a JSON object:
//
//     title    the command
//     events   of each: name, unit of periods ("ns", or what they count), total
//              (period), samples (null: a trace of calls has none), facts:
//              [name, text]..., the header of every report
//     seconds  length of all bins together
//     cpus     number of CPUs
//     images   paths
//     symbols  name[], image[] (index in images)
//     nodes    parent[], symbol[]: paths of calls; node 0 is the root
//     tasks    [id, name]...
//     origin   task[] (index in tasks), cpu[], mode[] (enum sample_mode),
//              event[] (index in events)
//     bins     a list for each bin of time: node, origin, samples, period,
//              node, origin, ...
//
// All indices count from 0. The page computes what it displays.
#pragma once

#include <stdio.h>

#include "strobe.h"

// Lack of memory ends the program.
void html_data(struct profile *p, FILE *out);
