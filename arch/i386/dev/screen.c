// Parser of the screen's control sequences; see screen.h.
#include "arch/i386/dev/cp437.h"
#include "arch/i386/dev/screen_cells.h"
#include "lib/assert.h"
#include "lib/string.h"

#define PARAMETER_MAX 9999u
#define ESC 0x1b
#define CANCEL 0x18
#define SUBSTITUTE 0x1a
#define DELETE 0x7f

// --- colours and modes

static void plain(struct screen *s)
{
    s->foreground = WHITE;
    s->background = BLACK;
    s->bold = s->reverse = false;
}

// ECMA-48's colour bits are red 1, green 2, blue 4; the VGA's blue 1, green 2,
// red 4.
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

// Parameter `i`, or `standard` if it is missing or 0.
static u32 parameter(const struct screen *s, u32 i, u32 standard)
{
    u32 p = i < s->parameter_count ? s->parameters[i] : 0;
    return p ? p : standard;
}

static void erase_in_display(struct screen *s)
{
    u32 kind = parameter(s, 0, 0);
    if (kind == 0) {
        cells_erase(s, s->y, s->x, s->cols);
        cells_erase_rows(s, s->y + 1, s->rows);
    } else if (kind == 1) {
        cells_erase_rows(s, 0, s->y);
        cells_erase(s, s->y, 0, s->x + 1);
    } else {
        cells_erase_rows(s, 0, s->rows);
        if (kind == 3)
            s->history = 0;
    }
}

static void erase_in_line(struct screen *s)
{
    u32 kind = parameter(s, 0, 0);
    cells_erase(s, s->y, kind == 0 ? s->x : 0, kind == 1 ? s->x + 1 : s->cols);
}

static void set_region(struct screen *s)
{
    u32 top = parameter(s, 0, 1), bottom = parameter(s, 1, s->rows);
    bottom = MIN(bottom, s->rows);
    if (top >= bottom)
        return;
    s->top = top - 1;
    s->bottom = bottom - 1;
    cursor_move_to(s, 0, 0);
}

// Inserts or deletes lines at the cursor, within the scroll region only.
static void shift_lines(struct screen *s, bool insert, u32 n)
{
    if (s->y < s->top || s->y > s->bottom)
        return;
    if (insert)
        cells_scroll_down(s, s->y, s->bottom, n);
    else
        cells_scroll_up(s, s->y, s->bottom, n);
    cursor_move_to(s, 0, s->y);
}

static void back_tab(struct screen *s, u32 n)
{
    u32 x = s->x;
    while (n-- > 0 && x > 0)
        x = ALIGN_DOWN(x - 1, TAB_WIDTH);
    cursor_move_to(s, x, s->y);
}

static void move_by_sequence(struct screen *s, char final, u32 n)
{
    switch (final) {
    case 'A':
        cursor_move_up(s, n);
        break;
    case 'B':
    case 'e':
        cursor_move_to(s, s->x, s->y + n);
        break;
    case 'C':
    case 'a':
        cursor_move_to(s, s->x + n, s->y);
        break;
    case 'D':
        cursor_move_left(s, n);
        break;
    case 'E':
        cursor_move_to(s, 0, s->y + n);
        break;
    case 'F':
        cursor_move_up(s, n);
        cursor_move_to(s, 0, s->y);
        break;
    case 'G':
    case '`':
        cursor_move_to(s, n - 1, s->y);
        break;
    case 'H':
    case 'f':
        cursor_move_to(s, parameter(s, 1, 1) - 1, n - 1);
        break;
    case 'Z':
        back_tab(s, n);
        break;
    case 'd':
        cursor_move_to(s, s->x, n - 1);
        break;
    case 's':
        cursor_save(s);
        break;
    case 'u':
        cursor_restore(s);
        break;
    }
}

static void edit_by_sequence(struct screen *s, char final, u32 n)
{
    switch (final) {
    case '@':
        cells_insert(s, n);
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
        cells_delete(s, n);
        break;
    case 'S':
        cells_scroll_up(s, s->top, s->bottom, n);
        break;
    case 'T':
        cells_scroll_down(s, s->top, s->bottom, n);
        break;
    case 'X':
        cells_erase(s, s->y, s->x, MIN(s->x + n, s->cols));
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
    s->bottom = s->rows - 1;
    s->no_wrap = s->hidden_cursor = false;
    cells_erase_rows(s, 0, s->rows);
    cursor_move_to(s, 0, 0);
    cursor_save(s);
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
    case '%': // character sets and such: skip one character
        s->state = ESCAPE_SKIP_ONE;
        break;
    case '7':
        cursor_save(s);
        break;
    case '8':
        cursor_restore(s);
        break;
    case 'D':
        cursor_line_feed(s);
        break;
    case 'E':
        s->x = 0;
        cursor_line_feed(s);
        break;
    case 'M':
        cursor_reverse_line_feed(s);
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
        cursor_move_left(s, 1);
        break;
    case '\t':
        cursor_move_to(s, ALIGN_UP(s->x + 1, TAB_WIDTH), s->y);
        break;
    case '\n':
    case '\v':
    case '\f':
        cursor_line_feed(s);
        break;
    case '\r':
        cursor_move_to(s, 0, s->y);
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
    if (s->state == STRING) { // ends at BEL or ESC '\'
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
            cells_put(s, c);
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

// What was held back is no character.
static void put_held_bytes(struct screen *s)
{
    for (u32 i = 0; i < s->held_count; i++)
        cells_put(s, s->held[i]);
    s->held_count = 0;
}

// A byte beyond ASCII, in text.
static void text_byte(struct screen *s, u8 c)
{
    if (s->held_count && utf8_following(c) >= 0)
        put_held_bytes(s); // another character begins
    s->held[s->held_count++] = c;
    int following = utf8_following(s->held[0]);
    if (following > 0 && s->held_count <= (u32)following)
        return;
    u32 character = following > 0 ? utf8_decode(s->held, s->held_count) : 0;
    if (!character) {
        put_held_bytes(s);
        return;
    }
    s->held_count = 0;
    if (character >= 0xa0)
        cells_put(s, cp437_of(character));
}

void screen_write(struct screen *s, const char *text, size_t n)
{
    screen_look(s, 0);
    for (size_t i = 0; i < n; i++) {
        u8 c = (u8)text[i];
        if (c >= 0x80 && s->state == TEXT) {
            text_byte(s, c);
            continue;
        }
        put_held_bytes(s);
        character(s, c);
    }
}

void screen_look(struct screen *s, int steps)
{
    u32 step = MAX(s->rows / 2, 1u), back = 0;
    if (steps < 0)
        back = MIN(s->back + step * (u32)-steps, s->history);
    else if (steps > 0)
        back = s->back - MIN(s->back, step * (u32)steps);
    if (back == s->back)
        return;
    s->back = back;
    memset(s->dirty, true, s->rows);
}

void screen_init(struct screen *s, u16 *cells, size_t n, u32 rows, u32 cols)
{
    assert(rows && rows <= SCREEN_ROWS_MAX && cols && rows * cols <= n);
    memset(s, 0, sizeof(*s));
    s->cells = cells;
    s->rows = rows;
    s->cols = cols;
    s->lines = MIN(n / cols, SCREEN_LINES_MAX);
    for (u32 i = 0; i < s->lines; i++)
        s->line[i] = (u16)i;
    s->first = s->lines - rows;
    reset(s);
}
