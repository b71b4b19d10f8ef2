// gprof ignores local symbols whose names contain a '.', such as those of parts
// of a function that GCC has split (name.part.0, name.isra.0, name.cold). It
// would count their samples for the function before them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Replaces '.' by '_' in the names of an ELF file's functions. Returns the
// number of changed names. The file may be malformed.
uint32_t gprof_names(uint8_t *elf, size_t size);
