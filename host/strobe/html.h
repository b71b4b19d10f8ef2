// strobe export --html: one page with the whole profile in it: a flame graph,
// a timeline, and how it was measured.
#pragma once

#include <stdio.h>

#include "strobe.h"

// Writes build/page.html, found beside the tool, with the profile in it. Ends
// the program, with a message, when there is no such page.
void export_html(struct profile *p, FILE *out);
