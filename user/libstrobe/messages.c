// Messages to the user.
#define _GNU_SOURCE // program_invocation_short_name, vasprintf
#include "strobe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

static void complain_va(const char *fmt, va_list args)
{
    fflush(stdout);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    char *text;
    if (vasprintf(&text, fmt, args) >= 0) {
        fprintf(stderr, "%s\n", printable(text)); // names come from anywhere
        free(text);
    }
}

void complain(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    complain_va(fmt, args);
    va_end(args);
}

void fail(int status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    complain_va(fmt, args);
    va_end(args);
    exit(status);
}
