// The data of the page of a comparison, a JSON object:
//
//     unit      "ms", or the event
//     sides     before and after: command; runs: how each was measured
//     left_out  nodes with a smaller share on both sides are in no tree
//     symbols   name[], path[]; a program's path is ""
//     calls, inverted   (diff_tree.h)
//               parent[], symbol[]; before[] and after[]: means of the runs;
//               chance[]: by Welch's t test, or null; node 0 is the root
//     table     the output of diff --json
//
// All indices count from 0.
#pragma once

#include <stdio.h>

#include "diff_tree.h"
#include "user/libprofile/diff.h"

// Call it after diff_trees_sum().
void html_diff(FILE *out, struct diff *d, const struct diff_trees *t);
