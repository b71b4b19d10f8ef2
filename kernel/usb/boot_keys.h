// Reports of a boot keyboard (HID 1.11, appendix B.1) as the codes that a PS/2
// keyboard sends (set 1), which kernel/base/keymap.h translates.
//
// Pure code without locks: the keyboard's driver owns the state.
#pragma once

#include "lib/types.h"

#define BOOT_REPORT_BYTES 8u
#define BOOT_KEYS 6u
#define BOOT_CODES_MAX 64u // most that one report yields

struct boot_keys {
    u8 modifiers;       // held, as bits
    u8 held[BOOT_KEYS]; // usages; 0: none
    u8 last;            // the key that repeats; 0: none
};

// Stores the codes of what has changed since the last report, and returns their
// number. A report that is too short changes nothing, nor do the keys of one
// that says that too many are held.
size_t boot_keys_report(struct boot_keys *k, const u8 *report, size_t n,
                        u8 codes[BOOT_CODES_MAX]);
// The codes of the key that repeats while it is held; 0: there is none.
size_t boot_keys_repeat(const struct boot_keys *k, u8 codes[BOOT_CODES_MAX]);
