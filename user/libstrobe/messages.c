// Messages to the user.
#define _GNU_SOURCE // program_invocation_short_name
#include "strobe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#define MESSAGE_MAX 8192 // two paths, and words

static void complain_va(const char *fmt, va_list args)
{
    char text[MESSAGE_MAX]; // there may be no memory: that is told, too
    vsnprintf(text, sizeof(text), fmt, args);
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", program_invocation_short_name,
            printable(text)); // names come from anywhere
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
