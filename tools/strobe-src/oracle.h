// Reads the files of tools/vm --oracle (docs/exact.md).
#pragma once

#include "strobe.h"

bool oracle_is(const void *bytes, size_t size);
// Adds the samples of a file. Ends the program with a message if it is damaged.
// p->path, p->samples and p->elves must be valid.
void oracle_read(struct profile *p, struct oracle_check *check,
                 const void *bytes, size_t size);
