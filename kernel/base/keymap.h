// Translates the codes of a keyboard (set 1) to terminal input, by its layout.
//
// Pure code without locks: the keyboard's driver owns the state. Each keyboard
// has its own, with its own modifiers and locks.
#pragma once

#include "kernel/base/layout.h"

#define KEY_TEXT_MAX 8 // most characters that a key yields

struct keymap {
    const struct layout *layout; // NULL: us
    u32 dead;                    // the dead key typed last, or 0
    u32 held;                    // modifiers that are held down, as bits
    bool caps_lock, num_lock;
    bool extended; // the previous code was 0xe0
    bool sysrq;    // Alt+SysRq was pressed, and Alt is still down
    char request;  // a letter typed while `sysrq`; 0: none
    int look;      // Shift+PgUp: -1, Shift+PgDn: 1; 0: none
    u32 to_skip;   // codes left of the Pause key's sequence
};

// Handles one code from the keyboard. Stores its characters in `text` and
// returns their number: 0 for releases, modifiers, unknown keys, requests and
// looks at earlier lines. The caller takes `request` and `look` and resets them
// to 0.
size_t keymap_code(struct keymap *k, u8 code, char text[KEY_TEXT_MAX]);
