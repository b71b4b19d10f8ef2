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
    u64 value = 0;
    size_t n = 0;

    while (n < *len && n < 11 && (*path)[n] >= '0' && (*path)[n] <= '9')
        value = value * 10 + (u32)((*path)[n++] - '0');
    if (n == 0 || (n > 1 && **path == '0') || value > UINT32_MAX)
        return false;
    *number = (u32)value;
    *path += n;
    *len -= n;
    return true;
}

static bool at_end(char c)
{
    return c == '\0' || c == '.';
}

enum pattern_result pattern_match(const char *pattern, const char *path,
                                  size_t len, u32 *number, const char **rest)
{
    *number = 0;
    *rest = pattern;
    while (len) {
        if (*pattern == '#') {
            if (!take_number(&path, &len, number))
                return PATTERN_OTHER;
            pattern++;
        }
        while (len && *path == *pattern && !at_end(*pattern)) {
            pattern++;
            path++;
            len--;
        }
        if (!at_end(*pattern) || (len && *path != '.'))
            return PATTERN_OTHER;
        if (!*pattern)
            return len ? PATTERN_OTHER : PATTERN_EXACT;
        *rest = ++pattern;
        if (!len)
            return PATTERN_ABOVE;
        path++; // the dot; a component must follow it
        if (!--len)
            return PATTERN_OTHER;
    }
    return PATTERN_ABOVE;
}
