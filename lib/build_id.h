// The build id that the linker puts into a program (--build-id): it
// distinguishes programs of the same name.
#pragma once

#include "lib/types.h"

#define BUILD_ID_MAX 20

// Searches `size` bytes of notes (gABI, chapter 5, "Note Section"), which are
// not trusted. Returns the id's length, 0 if there is none.
u32 build_id_find(const void *notes, u32 size, u8 out[BUILD_ID_MAX]);
