// The boot loader's modules become the initial files.
#pragma once

#include "lib/types.h"

// Unpacks every module of boot_info over the root and frees its memory. Panics
// when one is truncated or corrupt.
void initrd_init(void);

// Unpacks one archive over the current task's cwd; returns the number of files.
// Panics as above. `unpacked`, or NULL, is called when the archive before `pos`
// is no longer needed.
u32 initrd_unpack(const char *name, const u8 *archive, size_t size,
                  void (*unpacked)(const u8 *archive, size_t pos));
