#define _GNU_SOURCE // open_memstream
#include "header_lines.h"

#include <stdlib.h>
#include <string.h>

// Joins each line that begins with spaces, which continues a line, to it.
static void join_lines(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        if (from[0] == '\n' && from[1] == ' ') // the last space remains
            from += strspn(from + 1, " ");
        *to++ = *from;
    }
    *to = '\0';
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
    join_lines(text);
    strtok_r(text, "\n", &rest);
    for (char *line; (line = strtok_r(NULL, "\n", &rest)) != NULL;) {
        size_t name = strcspn(line, ":");
        put(arg, line, name, line + name + strspn(line + name, ": "));
    }
    free(text);
}
