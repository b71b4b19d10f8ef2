// Pages for a browser, each one file with its data in it: a profile's flame
// graph and timeline (strobe export --html), or what changed between runs
// (strobe diff --html).
#pragma once

#include <stdio.h>

#include "strobe.h"

// Writes BUILD/NAME.html with the JSON that `data` writes in it. Ends the
// program, with a message, when there is no such page.
void html_page(FILE *out, const char *build, const char *name,
               void (*data)(FILE *out, void *arg), void *arg);
// The page of a profile.
void export_html(struct profile *p, FILE *out);
