// The random generator's side towards sources of entropy; random_bytes, its
// other side, is in devfs.h.
#pragma once

#include "lib/types.h"

// Mixes the time of an event, and what is known of it, into the generator. Any
// context but NMI. Cheap enough for every keystroke.
void random_stir(u32 event);
