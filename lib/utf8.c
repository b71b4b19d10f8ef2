// UTF-8; see utf8.h.
#include "lib/utf8.h"

#define CONTINUES(c) (((c)&0xc0) == 0x80)

int utf8_following(u8 first)
{
    if (first < 0x80)
        return 0;
    if (first >= 0xc2 && first <= 0xdf)
        return 1;
    if (first >= 0xe0 && first <= 0xef)
        return 2;
    return first >= 0xf0 && first <= 0xf4 ? 3 : -1;
}

u32 utf8_decode(const u8 *bytes, size_t n)
{
    static const u32 least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (n < 2)
        return n ? bytes[0] : 0;
    u32 c = bytes[0] & (0x7f >> n);
    for (size_t i = 1; i < n; i++) {
        if (!CONTINUES(bytes[i]))
            return 0;
        c = c << 6 | (bytes[i] & 0x3f);
    }
    bool surrogate = c >= 0xd800 && c <= 0xdfff;
    return c < least[n] || surrogate || c > 0x10ffff ? 0 : c;
}

u32 utf8_next(const char **text)
{
    const u8 *bytes = (const u8 *)*text;
    int following = utf8_following(bytes[0]);
    if (!bytes[0] || following < 0)
        return 0;
    *text += following + 1;
    return utf8_decode(bytes, (size_t)following + 1);
}

size_t utf8_put(u32 c, char text[UTF8_MAX])
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (n == 1) {
        text[0] = (char)c;
        return 1;
    }
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        text[i] = (char)(0x80 | (c & 0x3f));
    text[0] = (char)((u8)(0xf00u >> n) | c);
    return n;
}
