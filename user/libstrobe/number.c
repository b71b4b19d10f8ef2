#include "strobe.h"

#include <errno.h>
#include <stdlib.h>

bool decimal(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *out = (uint32_t)value;
    // (strtoull takes blanks and signs, too.)
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 &&
           value >= min && value <= max;
}
