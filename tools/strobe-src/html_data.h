// What the flame graph page shows, as one object of JSON:
//
//     title    what was run
//     events   of each: name, total (samples), facts: [name, text]..., the
//              header of every report
//     seconds  that all bins have together; cpus
//     images   paths
//     symbols  name[], image[] (a number of images)
//     nodes    parent[], symbol[]: paths of calls; node 0 is the root
//     tasks    [id, name]...
//     who      task[] (a number of tasks), cpu[], mode[] (enum sample_mode),
//              event[] (a number of events)
//     bins     a list for each bin of time: node, who, samples, node, who, ...
//
// All lists are numbered from 0. What is shown is computed in the page.
#pragma once

#include <stdio.h>

#include "strobe.h"

// No memory ends the program.
void html_data(struct profile *p, FILE *out);
