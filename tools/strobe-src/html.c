#include "html.h"

#include "html_data.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DATA_MARK "{{data}}"

// Only '<' could end the script element. In JSON it occurs only in strings,
// which can hold it escaped.
static void embed(FILE *out, const char *json, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (json[i] == '<')
            fputs("\\u003c", out);
        else
            fputc(json[i], out);
    }
}

// Reads the page without its data. The result ends with NUL.
static char *read_page(const char *build, const char *name)
{
    char path[PATH_MAX];
    size_t size = 0;

    snprintf(path, sizeof(path), "%s/%s.html", build, name);
    char *bytes = file_read(path, &size);
    if (!bytes)
        fail(1, "%s: %s; `make build/%s.html` makes it", path, strerror(errno),
             name);
    bytes[size] = '\0';
    if (!strstr(bytes, DATA_MARK))
        fail(1, "%s: has no data mark; rebuild it with `make -B build/%s.html`",
             path, name);
    return bytes;
}

void html_page(FILE *out, const char *build, const char *name,
               void (*data)(FILE *out, void *arg), void *arg)
{
    char *page = read_page(build, name), *json = NULL;
    char *mark = strstr(page, DATA_MARK);
    size_t size = 0;
    FILE *memory = open_memstream(&json, &size);

    if (!memory)
        fail(1, "not enough memory for the page");
    data(memory, arg);
    if (fclose(memory) != 0)
        fail(1, "not enough memory for the page");
    fwrite(page, 1, mark - page, out);
    embed(out, json, size);
    fputs(mark + strlen(DATA_MARK), out);
    free(json);
    free(page);
}

static void profile_data(FILE *out, void *arg)
{
    html_data(arg, out);
}

void export_html(struct profile *p, FILE *out)
{
    html_page(out, p->elves.build, "page", profile_data, p);
}
