#include "html.h"

#include "html_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DATA_MARK "{{data}}"

// Inside a script element only `<` could end it: it is in strings alone.
static void embed(FILE *out, const char *json, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (json[i] == '<')
            fputs("\\u003c", out);
        else
            fputc(json[i], out);
    }
}

// The page without its data, ended by NUL.
static char *read_page(const struct profile *p)
{
    char path[sizeof(p->elves.build) + sizeof("/page.html")];
    size_t size = 0;

    snprintf(path, sizeof(path), "%s/page.html", p->elves.build);
    char *bytes = file_read(path, &size);
    if (bytes == NULL)
        fail(1, "%s: %s; `make build/page.html` makes it", path,
             strerror(errno));
    bytes[size] = '\0';
    if (strstr(bytes, DATA_MARK) == NULL)
        fail(1,
             "%s: has no place for the data; `make -B build/page.html` "
             "makes it anew",
             path);
    return bytes;
}

void export_html(struct profile *p, FILE *out)
{
    char *page = read_page(p), *json = NULL;
    char *mark = strstr(page, DATA_MARK);
    size_t size = 0;
    FILE *data = open_memstream(&json, &size);

    if (data == NULL)
        fail(1, "not enough memory for the page");
    html_data(p, data);
    if (fclose(data) != 0)
        fail(1, "not enough memory for the page");
    fwrite(page, 1, mark - page, out);
    embed(out, json, size);
    fputs(mark + strlen(DATA_MARK), out);
    free(json);
    free(page);
}
