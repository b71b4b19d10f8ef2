// Reading data sets from the kernel.
#pragma once

#include "model.h"

// Reads everything. `task` selects the task whose system calls are read;
// SYSINFO_ALL: those of the whole system. Returns NULL, or the path of the node
// that could not be read, with errno set; then there is nothing to free.
const char *dataset_read(struct dataset *d, uint32_t task);
void dataset_free(struct dataset *d);
