// The random generator's interface for entropy sources; random_bytes, for its
// users, is in devfs.h.
#pragma once

#include "lib/types.h"

// Mixes the time of an event, and the event's data, into the generator. Any
// context but NMI. Cheap enough for every keystroke.
void random_stir(u32 event);
