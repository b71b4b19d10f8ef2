// Translation of scan codes to characters, and of other keys to the escape
// sequences of the terminal type "linux"; see keymap.h.
#include "kernel/base/keymap.h"
#include "lib/string.h"
#include "lib/utf8.h"

#define RELEASED 0x80
#define PREFIX_EXTENDED 0xe0
#define PREFIX_PAUSE 0xe1
#define PAUSE_CODES 2 // after each 0xe1

#define ESC "\033"
#define CONTROL(c) ((char)((c)&0x1f))

enum {
    SHIFT_LEFT = 1,
    SHIFT_RIGHT = 2,
    CONTROL_LEFT = 4,
    CONTROL_RIGHT = 8,
    ALT_LEFT = 16,
    ALT_RIGHT = 32,
};
#define SHIFT (SHIFT_LEFT | SHIFT_RIGHT)
#define CONTROLS (CONTROL_LEFT | CONTROL_RIGHT)
#define ALT (ALT_LEFT | ALT_RIGHT)

enum { // codes with a special meaning
    KEY_CONTROL = 0x1d,
    KEY_SHIFT_LEFT = 0x2a,
    KEY_SHIFT_RIGHT = 0x36,
    KEY_ALT = 0x38,
    KEY_PRINT = 0x37, // extended
    KEY_CAPS_LOCK = 0x3a,
    KEY_NUM_LOCK = 0x45,
    KEYPAD_FIRST = 0x47,
    KEYPAD_PAGE_UP = 0x49,
    KEYPAD_PAGE_DOWN = 0x51,
    KEYPAD_LAST = 0x53,
    KEY_SYSRQ = 0x54,
    KEYPAD_ENTER = 0x1c, // extended
    KEYPAD_SLASH = 0x35, // extended
};

// Keys that have the same character in all layouts.
static char fixed_character(u8 code)
{
    switch (code) {
    case 0x01:
        return ESC[0];
    case 0x0e: // Backspace
        return '\177';
    case 0x0f:
        return '\t';
    case 0x1c:
        return '\r';
    case 0x37: // keypad
        return '*';
    case 0x39:
        return ' ';
    default:
        return 0;
    }
}

static const char keypad_digits[] = "789-456+1230.";

static const char *const navigation[] = {
    ESC "[1~", ESC "[A",  ESC "[5~", "-", // Home, up, PgUp
    ESC "[D",  ESC "[G",  ESC "[C",  "+", // left, centre, right
    ESC "[4~", ESC "[B",  ESC "[6~",      // End, down, PgDn
    ESC "[2~", ESC "[3~",                 // Ins, Del
};

static const char *function_key(u8 code)
{
    static const char *const f1_to_f10[] = {
        ESC "[[A",  ESC "[[B",  ESC "[[C",  ESC "[[D",  ESC "[[E",
        ESC "[17~", ESC "[18~", ESC "[19~", ESC "[20~", ESC "[21~",
    };
    if (code >= 0x3b && code <= 0x44)
        return f1_to_f10[code - 0x3b];
    if (code == 0x57)
        return ESC "[23~";
    if (code == 0x58)
        return ESC "[24~";
    return NULL;
}

static u32 modifier(const struct keymap *k, u8 code)
{
    switch (code) {
    case KEY_CONTROL:
        return k->extended ? CONTROL_RIGHT : CONTROL_LEFT;
    case KEY_ALT:
        return k->extended ? ALT_RIGHT : ALT_LEFT;
    // The keyboard inserts extended "shift" codes around other keys.
    case KEY_SHIFT_LEFT:
        return k->extended ? 0 : SHIFT_LEFT;
    case KEY_SHIFT_RIGHT:
        return k->extended ? 0 : SHIFT_RIGHT;
    default:
        return 0;
    }
}

static char with_control(char c)
{
    if ((c >= '@' && c <= '_') || (c >= 'a' && c <= 'z'))
        return CONTROL(c);
    if (c == '/' || c == '?' || c == '-')
        return CONTROL('_');
    return c == ' ' ? 0 : c;
}

static const struct layout *layout_of(const struct keymap *k)
{
    return k->layout ? k->layout : &layout_us;
}

static bool is_letter(u32 c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= 0xc0 && c != 0xd7 && c != 0xf7 && c < 0x180);
}

// Caps lock changes keys whose both characters are letters.
static u32 level(const struct keymap *k, u8 code)
{
    const struct layout *l = layout_of(k);
    u32 level = k->held & ALT_RIGHT && layout_has_altgr(l) ? LEVEL_ALTGR : 0;
    bool shift = k->held & SHIFT;
    if (k->caps_lock && is_letter(layout_character(l, code, level)) &&
        is_letter(layout_character(l, code, level | LEVEL_SHIFT)))
        shift = !shift;
    return shift ? level | LEVEL_SHIFT : level;
}

// 0: none.
static u32 character(const struct keymap *k, u8 code)
{
    u32 c = (u8)fixed_character(code);
    return c ? c : layout_character(layout_of(k), code, level(k, code));
}

// Whether Alt means that the key follows ESC.
static bool meta(const struct keymap *k)
{
    u32 keys = layout_has_altgr(layout_of(k)) ? ALT_LEFT : ALT;
    return k->held & keys;
}

// Joins it with the dead key before it. If that is impossible, both are typed.
static size_t after_dead_key(struct keymap *k, u32 c, char *text)
{
    u32 dead = k->dead, composed = layout_compose(dead, c);
    k->dead = 0;
    if (composed)
        return utf8_put(composed, text);
    size_t n = utf8_put(layout_compose(dead, ' '), text);
    return is_dead(c) ? n : n + utf8_put(c, text + n);
}

static size_t ordinary(struct keymap *k, u8 code, char *text)
{
    u32 c = character(k, code);
    if (!c)
        return 0;
    if (k->dead)
        return after_dead_key(k, c, text);
    if (is_dead(c)) {
        k->dead = c;
        return 0;
    }
    if (k->held & CONTROLS && c < 0x80)
        c = (u8)with_control((char)c);
    size_t n = 0;
    if (meta(k))
        text[n++] = ESC[0];
    return n + utf8_put(c, text + n);
}

static size_t text_for(const char *sequence, char *text)
{
    size_t n = strlen(sequence);
    memcpy(text, sequence, n);
    return n;
}

// The keypad without num lock, or an extended key with the same code.
static size_t navigation_key(struct keymap *k, u8 code, char *text)
{
    if (k->held & SHIFT && code == KEYPAD_PAGE_UP)
        k->look = -1;
    else if (k->held & SHIFT && code == KEYPAD_PAGE_DOWN)
        k->look = 1;
    else
        return text_for(navigation[code - KEYPAD_FIRST], text);
    return 0;
}

static size_t extended_key(struct keymap *k, u8 code, char *text)
{
    if (code == KEYPAD_ENTER)
        return text_for("\r", text);
    if (code == KEYPAD_SLASH)
        return text_for("/", text);
    if (code >= KEYPAD_FIRST && code <= KEYPAD_LAST)
        return navigation_key(k, code, text);
    return 0;
}

static size_t key(struct keymap *k, u8 code, char *text)
{
    const char *sequence = function_key(code);
    if (sequence)
        return text_for(sequence, text);
    if (code >= KEYPAD_FIRST && code <= KEYPAD_LAST) {
        if (!k->num_lock)
            return navigation_key(k, code, text);
        text[0] = keypad_digits[code - KEYPAD_FIRST];
        return 1;
    }
    return ordinary(k, code, text);
}

// Alt+Print is SysRq; some keyboards send Print's code even then.
static bool is_sysrq(const struct keymap *k, u8 code)
{
    return k->held & ALT &&
           (code == KEY_SYSRQ || (k->extended && code == KEY_PRINT));
}

static size_t pressed(struct keymap *k, u8 code, char *text)
{
    if (is_sysrq(k, code)) {
        k->sysrq = true;
        return 0;
    }
    if (k->sysrq) {
        u32 c = layout_character(layout_of(k), code, 0);
        k->request = c < 0x80 ? (char)c : 0;
        return 0;
    }
    if (k->extended)
        return extended_key(k, code, text);
    if (code == KEY_CAPS_LOCK)
        k->caps_lock = !k->caps_lock;
    else if (code == KEY_NUM_LOCK)
        k->num_lock = !k->num_lock;
    else
        return key(k, code, text);
    return 0;
}

size_t keymap_code(struct keymap *k, u8 code, char text[KEY_TEXT_MAX])
{
    if (k->to_skip > 0) {
        k->to_skip--;
        return 0;
    }
    if (code == PREFIX_EXTENDED || code == PREFIX_PAUSE) {
        k->extended = code == PREFIX_EXTENDED;
        k->to_skip = code == PREFIX_PAUSE ? PAUSE_CODES : 0;
        return 0;
    }
    bool released = code & RELEASED;
    size_t n = 0;
    code &= ~RELEASED;
    u32 bit = modifier(k, code);
    if (bit)
        k->held = released ? k->held & ~bit : k->held | bit;
    else if (!released)
        n = pressed(k, code, text);
    k->extended = false;
    k->sysrq = k->sysrq && k->held & ALT;
    return n;
}
