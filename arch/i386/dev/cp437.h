// The font's characters: code page 437.
#pragma once

#include "lib/types.h"

// The font's character for one beyond ASCII: the same one, or a similar one
// (letters without their accents), or '?'.
u8 cp437_of(u32 character);
