#include "strobe.h"

#include <errno.h>
#include <stdlib.h>

bool decimal(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *out = (uint32_t)value;
    // The first check rejects blanks and signs, which strtoull accepts.
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 &&
           value >= min && value <= max;
}
