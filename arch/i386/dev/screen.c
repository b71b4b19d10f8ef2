// The screen's cells and the control sequences that change them; see screen.h.
#include "arch/i386/dev/screen.h"
#include "lib/string.h"

#define TAB_WIDTH 8u
#define PARAMETER_MAX 9999u
#define LAST_ROW (SCREEN_ROWS - 1)
#define LAST_COLUMN (SCREEN_COLS - 1)
#define WHITE 7
#define BLACK 0
#define BRIGHT 8
#define ESC 0x1b
#define CANCEL 0x18
#define SUBSTITUTE 0x1a
#define DELETE 0x7f

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
    return s->cells[s->line[y]];
}

static void erase(struct screen *s, u32 y, u32 from, u32 to)
{
    u16 blank = (u16)(' ' | WHITE << 8 | s->background << 12);
    for (u32 x = from; x < to; x++)
        row(s, y)[x] = blank;
    s->dirty |= 1u << y;
}

static void erase_rows(struct screen *s, u32 from, u32 to)
{
    for (u32 y = from; y < to; y++)
        erase(s, y, 0, SCREEN_COLS);
}

static u32 row_bits(u32 first, u32 last)
{
    return (2u << last) - (1u << first);
}

// Rows are not copied: `line` is rotated.
static void scroll_up(struct screen *s, u32 top, u32 bottom, u32 n)
{
    n = MIN(n, bottom - top + 1);
    for (u32 i = 0; i < n; i++) {
        u8 first = s->line[top];
        memmove(&s->line[top], &s->line[top + 1], bottom - top);
        s->line[bottom] = first;
    }
    if (top == 0 && bottom == LAST_ROW) {
        s->scrolled += n;
        s->dirty >>= n;
    } else {
        s->dirty |= row_bits(top, bottom);
    }
    erase_rows(s, bottom + 1 - n, bottom + 1);
}

static void scroll_down(struct screen *s, u32 top, u32 bottom, u32 n)
{
    n = MIN(n, bottom - top + 1);
    for (u32 i = 0; i < n; i++) {
        u8 last = s->line[bottom];
        memmove(&s->line[top + 1], &s->line[top], bottom - top);
        s->line[top] = last;
    }
    s->dirty |= row_bits(top, bottom);
    erase_rows(s, top, top + n);
}

static void insert_characters(struct screen *s, u32 n)
{
    n = MIN(n, SCREEN_COLS - s->x);
    u16 *at = row(s, s->y) + s->x;
    memmove(at + n, at, (SCREEN_COLS - s->x - n) * sizeof(*at));
    erase(s, s->y, s->x, s->x + n);
}

static void delete_characters(struct screen *s, u32 n)
{
    n = MIN(n, SCREEN_COLS - s->x);
    u16 *at = row(s, s->y) + s->x;
    memmove(at, at + n, (SCREEN_COLS - s->x - n) * sizeof(*at));
    erase(s, s->y, SCREEN_COLS - n, SCREEN_COLS);
}

// --- the cursor

static void move_to(struct screen *s, u32 x, u32 y)
{
    s->x = MIN(x, LAST_COLUMN);
    s->y = MIN(y, LAST_ROW);
    s->wrap_pending = false;
}

static void move_up(struct screen *s, u32 n)
{
    move_to(s, s->x, s->y - MIN(n, s->y));
}

static void move_left(struct screen *s, u32 n)
{
    move_to(s, s->x - MIN(n, s->x), s->y);
}

static void line_feed(struct screen *s)
{
    if (s->y == s->bottom)
        scroll_up(s, s->top, s->bottom, 1);
    else
        move_to(s, s->x, s->y + 1);
    s->wrap_pending = false;
}

static void reverse_line_feed(struct screen *s)
{
    if (s->y == s->top)
        scroll_down(s, s->top, s->bottom, 1);
    else
        move_up(s, 1);
    s->wrap_pending = false;
}

static void save_cursor(struct screen *s)
{
    s->saved.x = s->x;
    s->saved.y = s->y;
    s->saved.foreground = s->foreground;
    s->saved.background = s->background;
    s->saved.bold = s->bold;
    s->saved.reverse = s->reverse;
}

static void restore_cursor(struct screen *s)
{
    move_to(s, s->saved.x, s->saved.y);
    s->foreground = s->saved.foreground;
    s->background = s->saved.background;
    s->bold = s->saved.bold;
    s->reverse = s->saved.reverse;
}

static void put(struct screen *s, u8 c)
{
    if (s->wrap_pending) {
        s->x = 0;
        line_feed(s);
    }
    row(s, s->y)[s->x] = cell(s, c);
    s->dirty |= 1u << s->y;
    if (s->x < LAST_COLUMN)
        s->x++;
    else
        s->wrap_pending = !s->no_wrap;
}

// --- colours and modes

static void plain(struct screen *s)
{
    s->foreground = WHITE;
    s->background = BLACK;
    s->bold = s->reverse = false;
}

// ECMA-48 counts red 1, green 2, blue 4; the VGA blue 1, green 2, red 4.
static u8 vga_colour(u32 ansi)
{
    static const u8 colours[8] = { 0, 4, 2, 6, 1, 5, 3, 7 };
    return colours[ansi & 7];
}

static void set_rendition(struct screen *s, u32 p)
{
    switch (p) {
    case 0:
        plain(s);
        break;
    case 1:
        s->bold = true;
        break;
    case 7:
        s->reverse = true;
        break;
    case 21:
    case 22:
        s->bold = false;
        break;
    case 27:
        s->reverse = false;
        break;
    case 30 ... 37:
        s->foreground = vga_colour(p - 30);
        break;
    case 39:
        s->foreground = WHITE;
        break;
    case 40 ... 47:
        s->background = vga_colour(p - 40);
        break;
    case 49:
        s->background = BLACK;
        break;
    case 90 ... 97:
        s->foreground = vga_colour(p - 90);
        s->bold = true;
        break;
    }
}

static void set_renditions(struct screen *s)
{
    for (u32 i = 0; i < s->parameter_count; i++) {
        u32 p = s->parameters[i];
        if (p == 38 || p == 48) // 256 colours (;5;n) and RGB (;2;r;g;b)
            i +=
                i + 1 < s->parameter_count && s->parameters[i + 1] == 2 ? 4 : 2;
        else
            set_rendition(s, p);
    }
}

static void set_private_mode(struct screen *s, bool on)
{
    for (u32 i = 0; i < s->parameter_count; i++) {
        if (s->parameters[i] == 7) // DECAWM
            s->no_wrap = !on;
        else if (s->parameters[i] == 25) // DECTCEM
            s->hidden_cursor = !on;
    }
}

// --- control sequences

// Parameter `i`; one that is missing or 0 is `standard`.
static u32 parameter(const struct screen *s, u32 i, u32 standard)
{
    u32 p = i < s->parameter_count ? s->parameters[i] : 0;
    return p ? p : standard;
}

static void erase_in_display(struct screen *s)
{
    u32 kind = parameter(s, 0, 0);
    if (kind == 0) {
        erase(s, s->y, s->x, SCREEN_COLS);
        erase_rows(s, s->y + 1, SCREEN_ROWS);
    } else if (kind == 1) {
        erase_rows(s, 0, s->y);
        erase(s, s->y, 0, s->x + 1);
    } else {
        erase_rows(s, 0, SCREEN_ROWS);
    }
}

static void erase_in_line(struct screen *s)
{
    u32 kind = parameter(s, 0, 0);
    erase(s, s->y, kind == 0 ? s->x : 0, kind == 1 ? s->x + 1 : SCREEN_COLS);
}

static void set_region(struct screen *s)
{
    u32 top = parameter(s, 0, 1), bottom = parameter(s, 1, SCREEN_ROWS);
    bottom = MIN(bottom, SCREEN_ROWS);
    if (top >= bottom)
        return;
    s->top = top - 1;
    s->bottom = bottom - 1;
    move_to(s, 0, 0);
}

// Insert or delete lines at the cursor: nothing outside the region.
static void shift_lines(struct screen *s, bool insert, u32 n)
{
    if (s->y < s->top || s->y > s->bottom)
        return;
    if (insert)
        scroll_down(s, s->y, s->bottom, n);
    else
        scroll_up(s, s->y, s->bottom, n);
    move_to(s, 0, s->y);
}

static void back_tab(struct screen *s, u32 n)
{
    u32 x = s->x;
    while (n-- > 0 && x > 0)
        x = ALIGN_DOWN(x - 1, TAB_WIDTH);
    move_to(s, x, s->y);
}

static void move_by_sequence(struct screen *s, char final, u32 n)
{
    switch (final) {
    case 'A':
        move_up(s, n);
        break;
    case 'B':
    case 'e':
        move_to(s, s->x, s->y + n);
        break;
    case 'C':
    case 'a':
        move_to(s, s->x + n, s->y);
        break;
    case 'D':
        move_left(s, n);
        break;
    case 'E':
        move_to(s, 0, s->y + n);
        break;
    case 'F':
        move_up(s, n);
        move_to(s, 0, s->y);
        break;
    case 'G':
    case '`':
        move_to(s, n - 1, s->y);
        break;
    case 'H':
    case 'f':
        move_to(s, parameter(s, 1, 1) - 1, n - 1);
        break;
    case 'Z':
        back_tab(s, n);
        break;
    case 'd':
        move_to(s, s->x, n - 1);
        break;
    case 's':
        save_cursor(s);
        break;
    case 'u':
        restore_cursor(s);
        break;
    }
}

static void edit_by_sequence(struct screen *s, char final, u32 n)
{
    switch (final) {
    case '@':
        insert_characters(s, n);
        break;
    case 'J':
        erase_in_display(s);
        break;
    case 'K':
        erase_in_line(s);
        break;
    case 'L':
        shift_lines(s, true, n);
        break;
    case 'M':
        shift_lines(s, false, n);
        break;
    case 'P':
        delete_characters(s, n);
        break;
    case 'S':
        scroll_up(s, s->top, s->bottom, n);
        break;
    case 'T':
        scroll_down(s, s->top, s->bottom, n);
        break;
    case 'X':
        erase(s, s->y, s->x, MIN(s->x + n, SCREEN_COLS));
        break;
    case 'm':
        set_renditions(s);
        break;
    case 'r':
        set_region(s);
        break;
    default:
        move_by_sequence(s, final, n);
    }
    if (final != 'm')
        s->wrap_pending = false;
}

static void finish_sequence(struct screen *s, char final)
{
    s->state = TEXT;
    if (s->prefix == '?' && (final == 'h' || final == 'l'))
        set_private_mode(s, final == 'h');
    else if (!s->prefix)
        edit_by_sequence(s, final, parameter(s, 0, 1));
}

static void sequence_character(struct screen *s, u8 c)
{
    u32 *p = &s->parameters[s->parameter_count - 1];
    if (c >= '0' && c <= '9')
        *p = MIN(*p * 10 + (c - '0'), PARAMETER_MAX);
    else if (c == ';' && s->parameter_count < SCREEN_PARAMETERS)
        s->parameters[s->parameter_count++] = 0;
    else if (c >= '<' && c <= '?')
        s->prefix = (char)c;
    else if (c >= ' ' && c < '@')
        s->prefix = ' ';
    else if (c < DELETE)
        finish_sequence(s, (char)c);
    else
        s->state = TEXT;
}

static void reset(struct screen *s)
{
    plain(s);
    s->top = 0;
    s->bottom = LAST_ROW;
    s->no_wrap = s->hidden_cursor = false;
    erase_rows(s, 0, SCREEN_ROWS);
    move_to(s, 0, 0);
    save_cursor(s);
}

static void escape_character(struct screen *s, u8 c)
{
    s->state = TEXT;
    switch (c) {
    case '[':
        s->state = CONTROL;
        s->parameter_count = 1;
        s->parameters[0] = 0;
        s->prefix = 0;
        break;
    case ']': // operating system command
    case 'P': // device control string
    case 'X':
    case '^':
    case '_':
        s->state = STRING;
        break;
    case '(':
    case ')':
    case '*':
    case '+':
    case '#':
    case '%': // character sets and such: one more character
        s->state = ESCAPE_SKIP_ONE;
        break;
    case '7':
        save_cursor(s);
        break;
    case '8':
        restore_cursor(s);
        break;
    case 'D':
        line_feed(s);
        break;
    case 'E':
        s->x = 0;
        line_feed(s);
        break;
    case 'M':
        reverse_line_feed(s);
        break;
    case 'c':
        reset(s);
        break;
    }
}

// --- the stream

static void control_character(struct screen *s, u8 c)
{
    switch (c) {
    case '\b':
        move_left(s, 1);
        break;
    case '\t':
        move_to(s, ALIGN_UP(s->x + 1, TAB_WIDTH), s->y);
        break;
    case '\n':
    case '\v':
    case '\f':
        line_feed(s);
        break;
    case '\r':
        move_to(s, 0, s->y);
        break;
    case ESC:
        s->state = ESCAPE;
        break;
    case CANCEL:
    case SUBSTITUTE:
        s->state = TEXT;
        break;
    }
}

static void character(struct screen *s, u8 c)
{
    if (s->state == STRING) { // up to BEL or ESC '\'
        if (c == '\a')
            s->state = TEXT;
        else if (c == ESC)
            s->state = ESCAPE;
        return;
    }
    if (c < ' ') {
        control_character(s, c);
        return;
    }
    switch (s->state) {
    case TEXT:
        if (c != DELETE)
            put(s, c);
        break;
    case ESCAPE:
        escape_character(s, c);
        break;
    case CONTROL:
        sequence_character(s, c);
        break;
    default: // ESCAPE_SKIP_ONE
        s->state = TEXT;
    }
}

void screen_write(struct screen *s, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        character(s, (u8)text[i]);
}

void screen_init(struct screen *s)
{
    memset(s, 0, sizeof(*s));
    for (u32 y = 0; y < SCREEN_ROWS; y++)
        s->line[y] = (u8)y;
    reset(s);
}
