// Pages of text: see page.h.
#include "page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROW 64 // rows at a time

static const char *const looks[] = { "", "\033[1m", "\033[7m" }; // SGR
#define LOOK_OFF "\033[0m"
#define LOOK_BYTES (sizeof("\033[7m" LOOK_OFF) - 1)

bool page_init(struct page *p, unsigned rows, unsigned columns)
{
    *p = (struct page){
        .lines = calloc(rows, sizeof(*p->lines)),
        .rows = rows,
        .columns = columns < PAGE_WIDE ? columns : PAGE_WIDE,
        .looks = true,
    };
    return p->lines != NULL;
}

void page_init_growing(struct page *p, unsigned columns)
{
    *p = (struct page){ .columns = columns < PAGE_WIDE ? columns : PAGE_WIDE,
                        .grows = true };
}

void page_free(struct page *p)
{
    free(p->lines);
    *p = (struct page){ 0 };
}

void page_clear(struct page *p)
{
    p->used = 0;
    p->broken = false;
}

static void grow(struct page *p)
{
    struct line *lines =
        realloc(p->lines, (p->rows + GROW) * sizeof(*p->lines));

    if (!lines) {
        p->broken = true;
        return;
    }
    p->lines = lines;
    p->rows += GROW;
}

void page_line(struct page *p)
{
    if (p->grows && p->used == p->rows)
        grow(p);
    p->used++;
    if (p->used <= p->rows) {
        struct line *l = &p->lines[p->used - 1];
        l->width = 0;
        l->size = 0;
        l->look = LOOK_PLAIN;
        l->text[0] = '\0';
    }
}

// Returns the current line, or NULL if it is below the page.
static struct line *current(const struct page *p)
{
    return p->used > 0 && p->used <= p->rows ? &p->lines[p->used - 1] : NULL;
}

static void add(struct line *l, const char *text, size_t size)
{
    memcpy(l->text + l->size, text, size);
    l->size += size;
    l->text[l->size] = '\0';
}

void page_put(struct page *p, enum look look, const char *fmt, ...)
{
    char text[PAGE_WIDE + 1];
    struct line *l = current(p);
    va_list args;

    if (!l)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    size_t size = strlen(text);
    if (size > page_left(p))
        size = page_left(p);
    if (!p->looks || l->size + size + LOOK_BYTES >= LINE_BYTES)
        look = LOOK_PLAIN;
    if (l->size + size >= LINE_BYTES)
        size = LINE_BYTES - 1 - l->size;
    if (size == 0)
        return;
    if (look != LOOK_PLAIN && look == l->look)
        l->size -=
            strlen(LOOK_OFF); // continue the highlighting of the text before
    else if (look != LOOK_PLAIN)
        add(l, looks[look], strlen(looks[look]));
    add(l, text, size);
    if (look != LOOK_PLAIN)
        add(l, LOOK_OFF, strlen(LOOK_OFF));
    l->width += size;
    l->look = look;
}

unsigned page_left(const struct page *p)
{
    const struct line *l = current(p);

    return l != NULL ? p->columns - l->width : 0;
}

unsigned page_rows_left(const struct page *p)
{
    if (p->grows)
        return ~0u;
    return p->rows > p->used ? p->rows - p->used : 0;
}
