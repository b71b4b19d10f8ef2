// Keyboard layouts; see layout.h. The rows: the key left of 1, then 1 to the
// key left of Backspace; Q ...; A ... and the key left of Enter; the key
// between Shift and the lowest row, and that row.
#include "kernel/base/layout.h"
#include "lib/string.h"
#include "lib/utf8.h"

#define NONE_OF_12 "            "

// clang-format off
#define US_PLAIN "`1234567890-=" "qwertyuiop[]" "asdfghjkl;'\\" "<zxcvbnm,./"
#define US_SHIFT "~!@#$%^&*()_+" "QWERTYUIOP{}" "ASDFGHJKL:\"|" ">ZXCVBNM<>?"

const struct layout layout_us = { "us", { US_PLAIN, US_SHIFT, NULL, NULL } };

// QWERTZ, DIN 2137 T1
static const struct layout layout_de = { "de", {
    "\u03021234567890ß\u0301" "qwertzuiopü+" "asdfghjklöä#" "<yxcvbnm,.-",
    "°!\"§$%&/()=?\u0300" "QWERTZUIOPÜ*" "ASDFGHJKLÖÄ'" ">YXCVBNM;:_",
    "  ²³   {[]}\\ " "@ €        ~" NONE_OF_12 "|      µ   ",
    NULL,
} };

// "Programmer's": as us, with Polish letters by AltGr
static const struct layout layout_pl = { "pl", {
    US_PLAIN,
    US_SHIFT,
    " " NONE_OF_12 "  ę   € ó   " "ąś      ł   " " żźć  ń    ",
    " " NONE_OF_12 "  Ę     Ó   " "ĄŚ      Ł   " " ŻŹĆ  Ń    ",
} };

// QWERTZ, ČSN 36 9050
static const struct layout layout_cz = { "cz", {
    ";+ěščřžýáíé=\u0301" "qwertzuiopú)" "asdfghjklů§\u0308" "\\yxcvbnm,.-",
    "\u030a1234567890%\u030c" "QWERTZUIOP/(" "ASDFGHJKL\"!'" "|YXCVBNM?:_",
    " ~ ^   `     " "\\|€         " " đĐ[]  łŁ$ß¤" "  #&@{} <>*",
    NULL,
} };

// AZERTY
static const struct layout layout_fr = { "fr", {
    "²&é\"'(-è_çà)=" "azertyuiop\u0302$" "qsdfghjklmù*" "<wxcvbn,;:!",
    " 1234567890°+" "AZERTYUIOP\u0308£" "QSDFGHJKLM%µ" ">WXCVBN?./§",
    "  ~#{[|`\\^@]}" "  €        ¤" NONE_OF_12 "           ",
    NULL,
} };
// clang-format on

static const struct layout *const layouts[] = {
    &layout_us, &layout_de, &layout_pl, &layout_cz, &layout_fr,
};
const char layout_names[] = "us de pl cz fr";

// A dead key: the sign itself, and pairs of a letter and what it becomes.
static const struct {
    u32 mark, sign;
    const char *pairs;
} dead_keys[] = {
    { 0x300, '`', "aàeèiìoòuùAÀEÈIÌOÒUÙ" },
    { 0x301, 0xb4, "aáeéiíoóuúyýcćlĺnńrŕsśzźAÁEÉIÍOÓUÚYÝCĆLĹNŃRŔSŚZŹ" },
    { 0x302, '^', "aâeêiîoôuûAÂEÊIÎOÔUÛ" },
    { 0x308, 0xa8, "aäeëiïoöuüyÿAÄEËIÏOÖUÜ" },
    { 0x30a, 0xb0, "aåuůAÅUŮ" },
    { 0x30c, 0x2c7, "cčdďeěnňrřsštťzžCČDĎEĚNŇRŘSŠTŤZŽ" },
};

const struct layout *layout_find(const char *name)
{
    for (u32 i = 0; i < ARRAY_SIZE(layouts); i++) {
        if (strcmp(layouts[i]->name, name) == 0)
            return layouts[i];
    }
    return NULL;
}

// A key's place in the rows; LAYOUT_KEYS: it is not in them.
static u32 place_of(u8 code)
{
    switch (code) {
    case 0x29:
        return 0;
    case 0x02 ... 0x0d:
        return 1 + code - 0x02u;
    case 0x10 ... 0x1b:
        return 13 + code - 0x10u;
    case 0x1e ... 0x28:
        return 25 + code - 0x1eu;
    case 0x2b:
        return 36;
    case 0x56:
        return 37;
    case 0x2c ... 0x35:
        return 38 + code - 0x2cu;
    default:
        return LAYOUT_KEYS;
    }
}

u32 layout_character(const struct layout *l, u8 code, u32 level)
{
    const char *row = l->levels[level & 3];
    u32 place = place_of(code), c = ' ';
    if (!row || place >= LAYOUT_KEYS)
        return 0;
    for (u32 i = 0; i <= place; i++)
        c = utf8_next(&row);
    return c == ' ' ? 0 : c;
}

u32 layout_compose(u32 dead, u32 base)
{
    for (u32 i = 0; i < ARRAY_SIZE(dead_keys); i++) {
        if (dead_keys[i].mark != dead)
            continue;
        if (base == ' ')
            return dead_keys[i].sign;
        const char *pairs = dead_keys[i].pairs;
        while (*pairs) {
            u32 letter = utf8_next(&pairs), composed = utf8_next(&pairs);
            if (letter == base)
                return composed;
        }
    }
    return 0;
}
