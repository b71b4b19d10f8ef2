// Keyboard layouts: which character a key has. Pure code.
#pragma once

#include "lib/types.h"

#define LEVEL_SHIFT 1u
#define LEVEL_ALTGR 2u // the right Alt key, in layouts that have this level
#define LAYOUT_KEYS 48u

struct layout {
    const char *name;
    // For each level the characters of LAYOUT_KEYS keys (UTF-8), row by row; a
    // blank: none. A combining character (U+0300 to U+036F) is a dead key: it
    // changes the letter that follows. NULL: the level has none.
    const char *levels[4];
};
extern const struct layout layout_us;

// NULL: there is no such layout.
const struct layout *layout_find(const char *name);
// The names of all, with blanks between them.
extern const char layout_names[];

// The character of a key, by its code (set 1, not extended); 0: none.
u32 layout_character(const struct layout *l, u8 code, u32 level);
static inline bool layout_has_altgr(const struct layout *l)
{
    return l->levels[LEVEL_ALTGR] != NULL;
}

static inline bool is_dead(u32 character)
{
    return character >= 0x300 && character <= 0x36f;
}
// A dead key's character on another one; 0: they do not go together. On a blank
// it is the sign itself.
u32 layout_compose(u32 dead, u32 base);
