// Matches paths against patterns: see pattern.h.

#include "kernel/monitor/pattern.h"

size_t pattern_head(const char *pattern)
{
    size_t n = 0;
    while (pattern[n] && pattern[n] != '.')
        n++;
    return n;
}

// Skips a number: decimal digits, no leading zero, at most UINT32_MAX.
static bool take_number(const char **path, size_t *len, u32 *number)
{
    u32 value = 0;
    size_t n = 0;
    for (; n < *len && (*path)[n] >= '0' && (*path)[n] <= '9'; n++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (u32)((*path)[n] - '0'), &value))
            return false;
    }
    if (n == 0 || (n > 1 && **path == '0'))
        return false;
    *number = value;
    *path += n;
    *len -= n;
    return true;
}

// How many bytes are the same, up to a number's place or the pattern's end.
static size_t same(const char *pattern, const char *path, size_t len)
{
    size_t n = 0;
    while (n < len && path[n] == pattern[n] && pattern[n] > '#')
        n++;
    return n;
}

enum pattern_result pattern_match(const char *pattern, const char *path,
                                  size_t len, u32 *number, const char **rest)
{
    *number = 0;
    *rest = pattern;
    if (!len)
        return PATTERN_ABOVE;
    while (len) {
        size_t n = same(pattern, path, len);
        pattern += n;
        path += n;
        len -= n;
        if (!len)
            break;
        if (*pattern != '#' || !take_number(&path, &len, number))
            return *path > *pattern ? PATTERN_BEFORE : PATTERN_BEHIND;
        pattern++;
    }
    if (!*pattern)
        return PATTERN_EXACT;
    *rest = pattern + 1;
    return *pattern == '.' ? PATTERN_ABOVE : PATTERN_BEHIND;
}
