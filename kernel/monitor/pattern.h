// Matches paths of the sysinfo tree against the patterns of its nodes.
//
// A pattern is a path in which at most one component is "#", which matches any
// decimal number up to 2^32-1 without leading zeros. The other bytes of
// patterns are letters, digits, "_" and dots, so those below a path are next to
// each other, and behind the path's own, if they are in order (strcmp). Pure;
// any context.
#pragma once

#include "lib/types.h"

enum pattern_result {
    PATTERN_BEFORE, // the path does not match, and sorts behind the pattern,
    PATTERN_BEHIND, // or before it
    PATTERN_EXACT,
    PATTERN_ABOVE, // the path ends at a component before the pattern's last
};

// Compares the `len` bytes at `path`. *number gets the number that "#" matched,
// 0 if none was; *rest (ABOVE) the part of the pattern below the path.
enum pattern_result pattern_match(const char *pattern, const char *path,
                                  size_t len, u32 *number, const char **rest);

// Length of a pattern's first component.
size_t pattern_head(const char *pattern);
