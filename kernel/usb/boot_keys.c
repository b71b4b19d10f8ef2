// From reports of boot keyboards to codes of set 1; see boot_keys.h. The codes
// are those of "USB HID to PS/2 Scan Code Translation Table" (Microsoft, 2004).
#include "kernel/usb/boot_keys.h"
#include "lib/assert.h"
#include "lib/string.h"

#define RELEASED 0x80
#define PREFIX_EXTENDED 0xe0
#define EXTENDED 0x80 // in the tables: the code has the prefix

#define USAGE_FIRST 4 // below: none, and errors
#define USAGE_CAPS_LOCK 0x39
#define USAGE_NUM_LOCK 0x53

// HID Usage Tables 1.12, section 10; 0: no such key on a PS/2 keyboard, or one
// whose codes mean nothing to the keymap (Pause).
static const u8 codes_of[] = {
    0,    0,    0,    0,    0x1e, 0x30,
    0x2e, 0x20, // 00: - - - - a b c d
    0x12, 0x21, 0x22, 0x23, 0x17, 0x24,
    0x25, 0x26, // 08: e to l
    0x32, 0x31, 0x18, 0x19, 0x10, 0x13,
    0x1f, 0x14, // 10: m to t
    0x16, 0x2f, 0x11, 0x2d, 0x15, 0x2c,
    0x02, 0x03, // 18: u to z, 1 2
    0x04, 0x05, 0x06, 0x07, 0x08, 0x09,
    0x0a, 0x0b, // 20: 3 to 0
    0x1c, 0x01, 0x0e, 0x0f, 0x39, 0x0c,
    0x0d, 0x1a, // 28: Enter Esc BS Tab ...
    0x1b, 0x2b, 0x2b, 0x27, 0x28, 0x29,
    0x33, 0x34, // 30: ] \ # ; ' ` , .
    0x35, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e,
    0x3f, 0x40, // 38: / Caps F1 to F6
    0x41, 0x42, 0x43, 0x44, 0x57, 0x58,
    0xb7, 0x46, // 40: F7 to F12 Print Scroll
    0,    0xd2, 0xc7, 0xc9, 0xd3, 0xcf,
    0xd1, 0xcd, // 48: Pause Ins Home ...
    0xcb, 0xd0, 0xc8, 0x45, 0xb5, 0x37,
    0x4a, 0x4e, // 50: left down up Num / *
    0x9c, 0x4f, 0x50, 0x51, 0x4b, 0x4c,
    0x4d, 0x47,                         // 58: Enter 1 to 7
    0x48, 0x49, 0x52, 0x53, 0x56, 0xdd, // 60: 8 9 0 . 102nd Menu
};

// Left control, shift, alt, GUI, then the right ones.
static const u8 modifier_codes[8] = { 0x1d, 0x2a, 0x38, 0xdb,
                                      0x9d, 0x36, 0xb8, 0xdc };

static size_t put(u8 entry, u8 released, u8 *codes, size_t n)
{
    if (!entry)
        return n;
    assert(n + 2 <= BOOT_CODES_MAX);
    if (entry & EXTENDED)
        codes[n++] = PREFIX_EXTENDED;
    codes[n++] = (u8)((entry & ~EXTENDED) | released);
    return n;
}

static u8 code_of(u8 usage)
{
    return usage < ARRAY_SIZE(codes_of) ? codes_of[usage] : 0;
}

static bool contains(const u8 *keys, u8 usage)
{
    return memchr(keys, usage, BOOT_KEYS) != NULL;
}

// Usages 1 to 3 are errors: too many keys, or a fault (HID 1.11, appendix C).
static bool keys_are_unknown(const u8 *keys)
{
    for (u32 i = 0; i < BOOT_KEYS; i++) {
        if (keys[i] && keys[i] < USAGE_FIRST)
            return true;
    }
    return false;
}

static size_t change_modifiers(struct boot_keys *k, u8 now, u8 *codes)
{
    size_t n = 0;
    for (u32 i = 0; i < 8; i++) {
        if ((k->modifiers ^ now) & 1u << i)
            n = put(modifier_codes[i], now & 1u << i ? 0 : RELEASED, codes, n);
    }
    k->modifiers = now;
    return n;
}

static bool repeats(u8 usage)
{
    return usage != USAGE_CAPS_LOCK && usage != USAGE_NUM_LOCK;
}

size_t boot_keys_report(struct boot_keys *k, const u8 *report, size_t n,
                        u8 codes[BOOT_CODES_MAX])
{
    if (n < BOOT_REPORT_BYTES)
        return 0;
    const u8 *keys = report + 2;
    size_t count = change_modifiers(k, report[0], codes);
    if (keys_are_unknown(keys))
        return count;
    for (u32 i = 0; i < BOOT_KEYS; i++) {
        if (k->held[i] && !contains(keys, k->held[i]))
            count = put(code_of(k->held[i]), RELEASED, codes, count);
    }
    u8 last = contains(keys, k->last) ? k->last : 0;
    for (u32 i = 0; i < BOOT_KEYS; i++) {
        bool twice = memchr(keys, keys[i], i) != NULL;
        if (!keys[i] || twice || contains(k->held, keys[i]))
            continue;
        count = put(code_of(keys[i]), 0, codes, count);
        last = repeats(keys[i]) ? keys[i] : 0;
    }
    for (u32 i = 0; i < BOOT_KEYS; i++) // a usage is stored once
        k->held[i] = memchr(keys, keys[i], i) ? 0 : keys[i];
    k->last = last;
    return count;
}

size_t boot_keys_repeat(const struct boot_keys *k, u8 codes[BOOT_CODES_MAX])
{
    return put(code_of(k->last), 0, codes, 0);
}
