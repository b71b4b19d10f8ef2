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
    bool sysrq;    // Alt+SysRq was pressed, and Alt is still down
    char request;  // a letter that was typed with them; 0: none
    u32 to_skip;   // rest of the Pause key's sequence
};

// One code from the keyboard. Stores what it stands for in `text`, returns its
// length: 0 for releases, modifiers, unknown keys and requests. Who calls takes
// `request`, and sets it to 0.
size_t keymap_code(struct keymap *k, u8 code, char text[KEY_TEXT_MAX]);
