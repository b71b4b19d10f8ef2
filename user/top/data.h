// Reading data sets from the kernel.
#pragma once

#include "model.h"

// Reads everything; `task`: whose system calls, SYSINFO_ALL of the whole
// system. NULL, or the path of the node that could not be read (errno), and
// then there is nothing to free.
const char *dataset_read(struct dataset *d, uint32_t task);
void dataset_free(struct dataset *d);
