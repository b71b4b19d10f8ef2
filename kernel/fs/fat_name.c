// FAT: names (FAT, "Directory Structure", "Long Directory Entries"); see fat.h.
// Long names are UTF-16. Of the aliases in 8.3 form the bytes from 128 on,
// whose code page is unknown, are shown as _.
#include "kernel/fs/fat.h"
#include "lib/string.h"
#include "lib/utf8.h"

#define BASE 8u
#define EXTENSION 3u
#define ALIAS (BASE + EXTENSION)
#define CASE_BASE 0x08 // lower case, as Windows NT writes it
#define CASE_EXTENSION 0x10
#define REALLY_E5 0x05 // for a name that begins so
#define ATTEMPTS_PLAIN 4u

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool fat_same_name(const char *a, const char *b)
{
    while (*a && upper(*a) == upper(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

static bool is_forbidden(u32 c)
{
    return c < ' ' || c == 0x7f || (c < 0x80 && strchr("\"*/:<>?\\|", (int)c));
}

// The next character, or 0: the text is not valid.
static u32 next_character(const char **text)
{
    const u8 *bytes = (const u8 *)*text;
    int following = utf8_following(bytes[0]);
    if (following < 0 ||
        strnlen(*text, (size_t)following + 1) <= (size_t)following)
        return 0;
    *text += following + 1;
    return utf8_decode(bytes, (size_t)following + 1);
}

u32 fat_encode_name(const char *name, u16 units[FAT_UNITS_MAX + 1])
{
    u32 n = 0;
    size_t length = strlen(name);
    if (!length || name[length - 1] == '.' || name[length - 1] == ' ' ||
        name[0] == ' ')
        return 0;
    while (*name) {
        u32 c = next_character(&name);
        if (is_forbidden(c) || n + (c > 0xffff) >= FAT_UNITS_MAX)
            return 0;
        if (c > 0xffff) {
            units[n++] = (u16)(0xd800 | (c - 0x10000) >> 10);
            c = 0xdc00 | ((c - 0x10000) & 0x3ff);
        }
        units[n++] = (u16)c;
    }
    units[n] = 0;
    return n;
}

static bool is_high_half(u32 c)
{
    return c >= 0xd800 && c < 0xdc00;
}

static bool is_low_half(u32 c)
{
    return c >= 0xdc00 && c < 0xe000;
}

bool fat_decode_name(const u16 *units, u32 count, char name[FAT_NAME_BYTES])
{
    u32 n = 0;
    for (u32 i = 0; i < count; i++) {
        u32 c = units[i];
        if (is_high_half(c) && i + 1 < count && is_low_half(units[i + 1]))
            c = 0x10000 + ((c & 0x3ff) << 10) + (units[++i] & 0x3ff);
        else if (is_high_half(c) || is_low_half(c))
            return false;
        char bytes[UTF8_MAX];
        u32 length = (u32)utf8_put(c, bytes);
        if (is_forbidden(c) || n + length >= FAT_NAME_BYTES)
            return false;
        memcpy(name + n, bytes, length);
        n += length;
    }
    name[n] = 0;
    return n && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static u32 decode_part(const u8 *part, u32 bytes, bool lowered, char *out)
{
    while (bytes && part[bytes - 1] == ' ')
        bytes--;
    for (u32 i = 0; i < bytes; i++) {
        char c = part[i] < 0x80 && !is_forbidden(part[i]) ? (char)part[i] : '_';
        out[i] = lowered ? lower(c) : c;
    }
    return bytes;
}

bool fat_decode_alias(const u8 *alias, u8 cases, char out[FAT_ALIAS_BYTES])
{
    u32 n = decode_part(alias, BASE, cases & CASE_BASE, out);
    if (!n)
        return false;
    if (alias[0] == REALLY_E5)
        out[0] = '_';
    u32 more = decode_part(alias + BASE, EXTENSION, cases & CASE_EXTENSION,
                           out + n + 1);
    if (more) {
        out[n] = '.';
        n += more + 1;
    }
    out[n] = 0;
    return true;
}

static bool is_alias_character(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c > ' ' && c < 0x7f && strchr("$%'-_@~`!(){}^#&", c));
}

// Up to `most` characters of a part of the name. False: it has others, or more.
static bool fill_part(u8 *part, u32 most, const char *name, size_t bytes)
{
    bool whole = true;
    u32 n = 0;
    for (size_t i = 0; i < bytes; i++) {
        bool right = is_alias_character(upper(name[i]));
        whole &= right && upper(name[i]) == name[i] && n < most;
        if (right && n < most)
            part[n++] = (u8)upper(name[i]);
        else if (!right && (u8)name[i] >= 0x80 && n < most)
            part[n++] = '_';
    }
    return whole;
}

static u32 hash(const char *name, u32 seed)
{
    u32 h = seed;
    while (*name)
        h = h * 31 + (u8)*name++;
    return h ^ h >> 16;
}

static u32 used(const u8 *alias)
{
    u32 n = 0;
    while (n < BASE && alias[n] != ' ')
        n++;
    return n;
}

// Up to six characters, ~ and a digit; or, where many names are alike, two,
// four digits of a hash, and ~1.
static void add_number(const char *name, u32 attempt, u8 *alias)
{
    u32 n = MIN(used(alias), BASE - 2);
    u32 digit = attempt;
    if (attempt > ATTEMPTS_PLAIN) {
        u32 h = hash(name, attempt);
        n = MIN(n, 2u);
        for (u32 i = 0; i < 4; i++, h >>= 4)
            alias[n++] = (u8) "0123456789ABCDEF"[h & 15];
        digit = 1;
    }
    alias[n] = '~';
    alias[n + 1] = (u8)('0' + digit);
    if (n + 2 < BASE)
        memset(alias + n + 2, ' ', BASE - n - 2);
}

bool fat_make_alias(const char *name, u32 attempt, u8 alias[ALIAS])
{
    const char *dot = strrchr(name, '.');
    size_t length = strlen(name);
    size_t base = dot && dot != name ? (size_t)(dot - name) : length;
    memset(alias, ' ', ALIAS);
    bool whole = fill_part(alias, BASE, name, base);
    if (base < length)
        whole &= fill_part(alias + BASE, EXTENSION, name + base + 1,
                           length - base - 1);
    whole &= used(alias) > 0;
    if (!whole)
        add_number(name, attempt, alias);
    return whole;
}

u8 fat_alias_sum(const u8 *alias)
{
    u8 sum = 0;
    for (u32 i = 0; i < ALIAS; i++)
        sum = (u8)((sum >> 1 | sum << 7) + alias[i]);
    return sum;
}
