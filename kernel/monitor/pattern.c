// Paths against patterns: see pattern.h.

#include "kernel/monitor/pattern.h"

#include "lib/string.h"

size_t pattern_head(const char *pattern)
{
    size_t n = 0;

    while (pattern[n] && pattern[n] != '.')
        n++;
    return n;
}

static size_t path_head(const char *path, size_t len)
{
    size_t n = 0;

    while (n < len && path[n] != '.')
        n++;
    return n;
}

static bool parse_number(const char *digits, size_t len, u32 *number)
{
    u64 value = 0;

    if (len == 0 || len > 10 || (len > 1 && digits[0] == '0'))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        value = value * 10 + (u32)(digits[i] - '0');
    }
    *number = (u32)value;
    return value <= UINT32_MAX;
}

static bool same_component(const char *pattern, size_t pattern_len,
                           const char *path, size_t len, u32 *number)
{
    if (pattern_len == 1 && pattern[0] == '#')
        return parse_number(path, len, number);
    return pattern_len == len && !memcmp(pattern, path, len);
}

enum pattern_result pattern_match(const char *pattern, const char *path,
                                  size_t len, u32 *number, const char **rest)
{
    *number = 0;
    *rest = pattern;
    if (len == 0)
        return PATTERN_ABOVE;
    for (;;) {
        size_t expected = pattern_head(pattern);
        size_t given = path_head(path, len);

        if (!same_component(pattern, expected, path, given, number))
            return PATTERN_OTHER;
        pattern += expected;
        path += given;
        len -= given;
        if (len == 0 && !*pattern)
            return PATTERN_EXACT;
        *rest = pattern + 1;
        if (len == 0)
            return PATTERN_ABOVE;
        if (!*pattern)
            return PATTERN_OTHER;
        pattern++; // the dots of both
        path++;
        len--;
    }
}
