// Text cells drawn as pixels; see pixels.h.
//
// Scrolling redraws the cells that differ from those above them: a blank
// remains blank. Four dots of a glyph are an index of `patterns`, so a dot
// costs a load and a store for each word, whatever the size of a pixel is.

#include "arch/i386/dev/pixels.h"
#include "lib/string.h"

#define ROWS_MIN 2u
#define COLS_MIN 20u
#define CURSOR_FIRST_LINE 13u // as the VGA's
#define CURSOR_LAST_LINE 14u
#define NO_ATTRIBUTE (~0u)

// The VGA's palette after reset: 8 bits each of red, green and blue.
static const u32 palette[16] = {
    0x000000, 0x0000aa, 0x00aa00, 0x00aaaa, 0xaa0000, 0xaa00aa,
    0xaa5500, 0xaaaaaa, 0x555555, 0x5555ff, 0x55ff55, 0x55ffff,
    0xff5555, 0xff55ff, 0xffff55, 0xffffff,
};

static u32 component(u32 value, struct boot_colour c)
{
    return value >> (8 - c.bits) << c.shift;
}

static bool choose_size(struct pixels *p, u32 width, u32 height)
{
    do {
        p->scale++;
        p->cols = width / (GLYPH_WIDTH * p->scale);
        p->rows = height / (GLYPH_HEIGHT * p->scale);
    } while (
        p->scale < PIXELS_SCALE_MAX &&
        (p->rows > SCREEN_ROWS_MAX || p->rows * p->cols > PIXELS_CELLS_MAX));
    if (p->rows < ROWS_MIN || p->cols < COLS_MIN)
        return false;
    p->rows = MIN(p->rows, SCREEN_ROWS_MAX);
    p->cols = MIN(p->cols, PIXELS_CELLS_MAX / p->rows);
    return true;
}

bool pixels_init(struct pixels *p, const struct boot_framebuffer *f, u32 height,
                 const u8 (*font)[GLYPH_HEIGHT])
{
    memset(p, 0, sizeof(*p));
    p->pitch = f->pitch;
    p->width = f->width;
    p->height = height;
    p->bytes = DIV_ROUND_UP(f->bits, 8u);
    p->font = font;
    p->cursor = NO_CURSOR;
    p->attribute = NO_ATTRIBUTE;
    for (u32 i = 0; i < ARRAY_SIZE(palette); i++)
        p->colours[i] = component(palette[i] >> 16 & 0xff, f->red) |
                        component(palette[i] >> 8 & 0xff, f->green) |
                        component(palette[i] & 0xff, f->blue);
    return choose_size(p, f->width, height);
}

void pixels_clear(struct pixels *p)
{
    if (!p->base)
        return;
    for (u32 y = 0; y < p->height; y++) {
        pixel_word *row = (pixel_word *)(p->base + y * p->pitch);
        for (u32 i = 0; i < p->width * p->bytes / sizeof(*row); i++)
            row[i] = 0;
    }
    // A blank in black on black.
    memset(p->shown, 0, sizeof(p->shown));
}

static void select_colours(struct pixels *p, u32 attribute)
{
    u32 front = p->colours[attribute & 15], back = p->colours[attribute >> 4];
    p->attribute = attribute;
    for (u32 dots = 0; dots < 16; dots++) {
        u8 *to = (u8 *)p->patterns[dots];
        for (u32 i = 0; i < 4 * p->scale; i++, to += p->bytes) {
            u32 colour = dots & 8u >> i / p->scale ? front : back;
            memcpy(to, &colour, p->bytes);
        }
    }
}

// Of 32 bits a pixel, not scaled: the usual framebuffer. The fields of `p` are
// not read in the loops, as the compiler must take each store for one to them.
static void draw_plain(const struct pixels *p, u8 *to, const u8 *glyph)
{
    const pixel_word(*patterns)[4 * PIXELS_SCALE_MAX] = p->patterns;
    u32 pitch = p->pitch;
    for (const u8 *end = glyph + GLYPH_HEIGHT; glyph < end; glyph++) {
        const pixel_word *left = patterns[*glyph >> 4];
        const pixel_word *right = patterns[*glyph & 15];
        pixel_word *word = (pixel_word *)to;
        word[0] = left[0];
        word[1] = left[1];
        word[2] = left[2];
        word[3] = left[3];
        word[4] = right[0];
        word[5] = right[1];
        word[6] = right[2];
        word[7] = right[3];
        to += pitch;
    }
}

static void draw_glyph(const struct pixels *p, u8 *to, const u8 *glyph)
{
    u32 pitch = p->pitch, scale = p->scale, words = p->bytes * scale;
    for (u32 y = 0; y < GLYPH_HEIGHT * scale; y++, to += pitch) {
        u32 dots = glyph[y / scale];
        const pixel_word *left = p->patterns[dots >> 4];
        const pixel_word *right = p->patterns[dots & 15];
        pixel_word *word = (pixel_word *)to;
        for (u32 w = 0; w < words; w++) {
            word[w] = left[w];
            word[words + w] = right[w];
        }
    }
}

static void draw_cell(struct pixels *p, u32 y, u32 x, u16 cell, bool cursor)
{
    const u8 *glyph = p->font[cell & 0xff];
    u8 with_cursor[GLYPH_HEIGHT];
    u8 *to = p->base + y * GLYPH_HEIGHT * p->scale * p->pitch +
             x * GLYPH_WIDTH * p->scale * p->bytes;
    if (p->attribute != cell >> 8)
        select_colours(p, cell >> 8);
    if (cursor) {
        memcpy(with_cursor, glyph, GLYPH_HEIGHT);
        memset(with_cursor + CURSOR_FIRST_LINE, 0xff,
               CURSOR_LAST_LINE + 1 - CURSOR_FIRST_LINE);
        glyph = with_cursor;
    }
    if (p->bytes * p->scale == 4 && p->scale == 1)
        draw_plain(p, to, glyph);
    else
        draw_glyph(p, to, glyph);
}

static void show_row(struct pixels *p, struct screen *s, u32 y)
{
    const u16 *cells = screen_row(s, y);
    u16 *shown = p->shown + y * p->cols;
    for (u32 x = 0; x < p->cols; x++) {
        if (cells[x] == shown[x])
            continue;
        shown[x] = cells[x];
        draw_cell(p, y, x, cells[x], false);
        if (p->cursor == y * p->cols + x)
            p->cursor = NO_CURSOR; // drawn over
    }
}

static void show_cursor(struct pixels *p, const struct screen *s)
{
    u32 at = screen_cursor_shown(s) ? s->y * p->cols + s->x : NO_CURSOR;
    u32 old = p->cursor;
    if (old == at)
        return;
    if (old != NO_CURSOR)
        draw_cell(p, old / p->cols, old % p->cols, p->shown[old], false);
    if (at != NO_CURSOR)
        draw_cell(p, s->y, s->x, p->shown[at], true);
    p->cursor = at;
}

void pixels_show(struct pixels *p, struct screen *s, u32 from, u32 to)
{
    if (!p->base)
        return;
    if (s->scrolled)
        memset(s->dirty, true, p->rows);
    s->scrolled = 0;
    for (u32 y = from; y < to; y++) {
        if (s->dirty[y])
            show_row(p, s, y);
        s->dirty[y] = false;
    }
    if (to == p->rows)
        show_cursor(p, s);
}
