// Messages to the user.
#define _GNU_SOURCE // program_invocation_short_name
#include "strobe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#define MESSAGE_MAX 8192 // fits two paths and some text

static void complain_va(const char *fmt, va_list args)
{
    char text[MESSAGE_MAX]; // on the stack: the message may be "out of memory"
    vsnprintf(text, sizeof(text), fmt, args);
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", program_invocation_short_name,
            printable(text)); // names in it are not trusted
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
