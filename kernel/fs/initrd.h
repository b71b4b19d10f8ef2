// The boot loader's modules become the first files.
#pragma once

#include "lib/types.h"

// Unpacks every module of boot_info over the root and frees its memory. Panics
// when one is truncated or corrupt.
void initrd_init(void);

// Unpacks one archive over the current task's cwd; how many files. Panics as
// above. `unpacked`, or NULL, is told that what lies before `pos` is not needed
// any more.
u32 initrd_unpack(const char *name, const u8 *archive, size_t size,
                  void (*unpacked)(const u8 *archive, size_t pos));
