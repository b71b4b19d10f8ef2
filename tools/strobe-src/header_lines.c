#define _GNU_SOURCE // open_memstream
#include "header_lines.h"

#include <stdlib.h>
#include <string.h>

// Joins each line that begins with blanks to the one before.
static void unfold(char *text)
{
    char *out = text;

    for (const char *at = text; *at; at++) {
        if (at[0] == '\n' && at[1] == ' ')
            at += strspn(at + 1, " ");
        *out++ = *at;
    }
    *out = '\0';
}

void header_lines(const struct profile *p, const struct perf_file *f,
                  const struct view *v,
                  void (*put)(void *arg, const char *name, size_t name_size,
                              const char *value),
                  void *arg)
{
    char *text, *rest = NULL;
    size_t size;
    FILE *header = open_memstream(&text, &size);

    if (!header)
        fail(1, "not enough memory for the header");
    profile_header(header, p, f, v);
    fclose(header);
    unfold(text);
    strtok_r(text, "\n", &rest);
    for (char *line; (line = strtok_r(NULL, "\n", &rest)) != NULL;) {
        size_t name = strcspn(line, ":");
        put(arg, line, name, line + name + strspn(line + name, ": "));
    }
    free(text);
}
