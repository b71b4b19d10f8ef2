// gprof leaves out functions of one file whose names have a '.', as the parts
// have that GCC makes of a function (name.part.0, name.isra.0, name.cold):
// their samples would be those of the function before them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// In an ELF file's symbols of functions '.' becomes '_'. Gives how many names
// that were. Nothing in the file is trusted.
uint32_t gprof_names(uint8_t *elf, size_t size);
