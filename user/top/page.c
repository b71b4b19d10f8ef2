// Pages of text: see page.h.
#include "page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROW 64 // rows at a time

static const char *const style_codes[] = { "", "\033[1m", "\033[7m" }; // SGR
#define STYLE_OFF "\033[0m"
#define STYLE_BYTES (sizeof("\033[7m" STYLE_OFF) - 1)

bool page_init(struct page *p, unsigned rows, unsigned columns)
{
    *p = (struct page){
        .lines = calloc(rows, sizeof(*p->lines)),
        .rows = rows,
        .columns = columns < PAGE_WIDE ? columns : PAGE_WIDE,
        .highlighting = true,
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
        l->style = STYLE_PLAIN;
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

void page_put(struct page *p, enum style style, const char *fmt, ...)
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
    if (size > page_columns_left(p))
        size = page_columns_left(p);
    if (!p->highlighting || l->size + size + STYLE_BYTES >= LINE_BYTES)
        style = STYLE_PLAIN;
    if (l->size + size >= LINE_BYTES)
        size = LINE_BYTES - 1 - l->size;
    if (size == 0)
        return;
    if (style != STYLE_PLAIN && style == l->style)
        l->size -=
            strlen(STYLE_OFF); // continue the highlighting of the text before
    else if (style != STYLE_PLAIN)
        add(l, style_codes[style], strlen(style_codes[style]));
    add(l, text, size);
    if (style != STYLE_PLAIN)
        add(l, STYLE_OFF, strlen(STYLE_OFF));
    l->width += size;
    l->style = style;
}

unsigned page_columns_left(const struct page *p)
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
