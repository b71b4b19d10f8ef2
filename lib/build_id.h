// The build id that the linker has put into a program (--build-id): what tells
// two programs of the same name apart.
#pragma once

#include "lib/types.h"

#define BUILD_ID_MAX 20

// Looks for it among `size` bytes of notes (gABI, chapter 5, "Note Section"),
// which may hold anything. Returns its length, 0 if there is none.
u32 build_id_find(const void *notes, u32 size, u8 out[BUILD_ID_MAX]);
