// Pages for a browser, each a single file that contains its data: a profile's
// flame graph and timeline (strobe export --html), or the differences between
// runs (strobe diff --html).
#pragma once

#include <stdio.h>

#include "strobe.h"

// Writes BUILD/NAME.html, with the output of `data`, which is JSON, inserted.
// Ends the program with a message if there is no such page.
void html_page(FILE *out, const char *build, const char *name,
               void (*data)(FILE *out, void *arg), void *arg);
// Writes the page of a profile.
void export_html(struct profile *p, FILE *out);
