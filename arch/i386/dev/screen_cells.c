// The screen's cells and its cursor; see screen_cells.h.
#include "arch/i386/dev/screen_cells.h"
#include "lib/string.h"

#define BRIGHT 8

// --- cells

static u16 cell(const struct screen *s, u8 c)
{
    u8 front = s->foreground | (s->bold ? BRIGHT : 0), back = s->background;
    if (s->reverse) {
        back = s->foreground;
        front = s->background | (s->bold ? BRIGHT : 0);
    }
    return (u16)(c | front << 8 | back << 12);
}

static u16 *row(struct screen *s, u32 y)
{
    return s->cells + s->line[s->first + y] * s->cols;
}

void cells_erase(struct screen *s, u32 y, u32 from, u32 to)
{
    u16 blank = (u16)(' ' | WHITE << 8 | s->background << 12);
    u16 *cells = row(s, y);
    for (u32 x = from; x < to; x++)
        cells[x] = blank;
    s->dirty[y] = true;
}

void cells_erase_rows(struct screen *s, u32 from, u32 to)
{
    for (u32 y = from; y < to; y++)
        cells_erase(s, y, 0, s->cols);
}

static void mark_rows(struct screen *s, u32 first, u32 last)
{
    memset(s->dirty + first, true, last - first + 1);
}

// The screen moves along the list of lines: its top rows are history now, and
// the oldest lines become its bottom rows.
static void move_screen(struct screen *s, u32 n)
{
    for (u32 i = 0; i < n; i++) {
        u32 end = s->first + s->rows;
        if (end == ARRAY_SIZE(s->line)) {
            memcpy(s->line, s->line + end - s->lines,
                   s->lines * sizeof(*s->line));
            end = s->lines;
        }
        s->line[end] = s->line[end - s->lines];
        s->first = end + 1 - s->rows;
    }
    s->history = MIN(s->history + n, s->lines - s->rows);
    s->scrolled += n;
    memmove(s->dirty, s->dirty + n, s->rows - n);
}

void cells_scroll_up(struct screen *s, u32 top, u32 bottom, u32 n)
{
    n = MIN(n, bottom - top + 1);
    u16 *line = s->line + s->first;
    if (top == 0 && bottom == s->rows - 1) {
        move_screen(s, n);
    } else {
        for (u32 i = 0; i < n; i++) {
            u16 first = line[top];
            memmove(line + top, line + top + 1, (bottom - top) * sizeof(*line));
            line[bottom] = first;
        }
        mark_rows(s, top, bottom);
    }
    cells_erase_rows(s, bottom + 1 - n, bottom + 1);
}

void cells_scroll_down(struct screen *s, u32 top, u32 bottom, u32 n)
{
    n = MIN(n, bottom - top + 1);
    u16 *line = s->line + s->first;
    for (u32 i = 0; i < n; i++) {
        u16 last = line[bottom];
        memmove(line + top + 1, line + top, (bottom - top) * sizeof(*line));
        line[top] = last;
    }
    mark_rows(s, top, bottom);
    cells_erase_rows(s, top, top + n);
}

void cells_insert(struct screen *s, u32 n)
{
    n = MIN(n, s->cols - s->x);
    u16 *at = row(s, s->y) + s->x;
    memmove(at + n, at, (s->cols - s->x - n) * sizeof(*at));
    cells_erase(s, s->y, s->x, s->x + n);
}

void cells_delete(struct screen *s, u32 n)
{
    n = MIN(n, s->cols - s->x);
    u16 *at = row(s, s->y) + s->x;
    memmove(at, at + n, (s->cols - s->x - n) * sizeof(*at));
    cells_erase(s, s->y, s->cols - n, s->cols);
}

// --- the cursor

void cursor_move_to(struct screen *s, u32 x, u32 y)
{
    s->x = MIN(x, s->cols - 1);
    s->y = MIN(y, s->rows - 1);
    s->wrap_pending = false;
}

void cursor_move_up(struct screen *s, u32 n)
{
    cursor_move_to(s, s->x, s->y - MIN(n, s->y));
}

void cursor_move_left(struct screen *s, u32 n)
{
    cursor_move_to(s, s->x - MIN(n, s->x), s->y);
}

void cursor_line_feed(struct screen *s)
{
    if (s->y == s->bottom)
        cells_scroll_up(s, s->top, s->bottom, 1);
    else
        cursor_move_to(s, s->x, s->y + 1);
    s->wrap_pending = false;
}

void cursor_reverse_line_feed(struct screen *s)
{
    if (s->y == s->top)
        cells_scroll_down(s, s->top, s->bottom, 1);
    else
        cursor_move_up(s, 1);
    s->wrap_pending = false;
}

void cursor_save(struct screen *s)
{
    s->saved.x = s->x;
    s->saved.y = s->y;
    s->saved.foreground = s->foreground;
    s->saved.background = s->background;
    s->saved.bold = s->bold;
    s->saved.reverse = s->reverse;
}

void cursor_restore(struct screen *s)
{
    cursor_move_to(s, s->saved.x, s->saved.y);
    s->foreground = s->saved.foreground;
    s->background = s->saved.background;
    s->bold = s->saved.bold;
    s->reverse = s->saved.reverse;
}

void cells_put(struct screen *s, u8 c)
{
    if (s->wrap_pending) {
        s->x = 0;
        cursor_line_feed(s);
    }
    row(s, s->y)[s->x] = cell(s, c);
    s->dirty[s->y] = true;
    if (s->x < s->cols - 1)
        s->x++;
    else
        s->wrap_pending = !s->no_wrap;
}
