// A US keyboard: scan codes (set 1) to what a terminal reads.
//
// Pure, and not locked: the keyboard's interrupt handler owns its state.
#pragma once

#include "lib/types.h"

#define KEY_TEXT_MAX 8 // characters a key may stand for

struct keymap {
    u32 held; // modifiers that are down, a bit each
    bool caps_lock, num_lock;
    bool extended; // the code before was 0xe0
    u32 to_skip;   // rest of the Pause key's sequence
};

// One code from the keyboard. Stores what it stands for in `text`, returns its
// length: 0 for releases, modifiers and unknown keys.
size_t keymap_code(struct keymap *k, u8 code, char text[KEY_TEXT_MAX]);
