// Text drawn into framebuffers of every kind, against a drawing dot by dot.
// link: arch/i386/dev/pixels.c arch/i386/dev/screen.c
// link: arch/i386/dev/screen_cells.c
// link: arch/i386/dev/cp437.c lib/utf8.c
#include "test.h"

#include "arch/i386/dev/pixels.h"

static u8 glyphs[256][GLYPH_HEIGHT];
static struct pixels pixels;
static struct screen screen;
static u16 cells[PIXELS_CELLS_MAX];
static struct boot_framebuffer fb;
static u8 *memory; // exactly as large as the framebuffer

#define VGA_WHITE 0xaaaaaa
#define RGB32            \
    { 16, 8 }, { 8, 8 }, \
    {                    \
        0, 8             \
    }

static const struct boot_framebuffer kinds[] = {
    { 0x1000, 1366 * 4 + 40, 1366, 100, 32, RGB32 },
    { 0x1000, 1024 * 4, 1024, 768, 32, { 0, 8 }, { 8, 8 }, { 16, 8 } },
    { 0x1000, 2560 * 4, 2560, 1440, 32, RGB32 },
    { 0x1000, 801 * 3, 801, 600, 24, RGB32 },
    { 0x1000, 640 * 2, 640, 480, 16, { 11, 5 }, { 5, 6 }, { 0, 5 } },
    { 0x1000, 640 * 2 + 2, 640, 480, 15, { 10, 5 }, { 5, 5 }, { 0, 5 } },
    { 0x1000, 3840 * 2, 3840, 2160, 16, { 11, 5 }, { 5, 6 }, { 0, 5 } },
    { 0x1000, 400 * 4, 400, 3000, 32, RGB32 },
};

static void begin(const struct boot_framebuffer *kind)
{
    fb = *kind;
    for (u32 i = 0; i < sizeof(glyphs); i++)
        glyphs[i / GLYPH_HEIGHT][i % GLYPH_HEIGHT] = (u8)random_below(256);
    memset(glyphs[' '], 0, GLYPH_HEIGHT);
    memory = malloc((size_t)fb.pitch * fb.height);
    assert_non_null(memory);
    memset(memory, 0x5a, (size_t)fb.pitch * fb.height);
    assert_true(pixels_init(&pixels, &fb, fb.height, glyphs));
    pixels.base = memory;
    pixels_clear(&pixels);
    screen_init(&screen, cells, ARRAY_SIZE(cells), pixels.rows, pixels.cols);
}

static void show(void)
{
    u32 middle = random_below(pixels.rows);
    pixels_show(&pixels, &screen, 0, middle);
    pixels_show(&pixels, &screen, middle, pixels.rows);
}

static u32 pixel(u32 x, u32 y)
{
    u32 value = 0, bytes = (fb.bits + 7u) / 8;
    memcpy(&value, memory + (size_t)y * fb.pitch + x * bytes, bytes);
    return value;
}

static u32 part(u32 rgb, u32 shift, struct boot_colour c)
{
    return (rgb >> shift & 0xff) >> (8 - c.bits) << c.shift;
}

static u32 colour(u32 vga)
{
    static const u32 palette[16] = {
        0,        0xaa,     0xaa00,   0xaaaa,   0xaa0000, 0xaa00aa,
        0xaa5500, 0xaaaaaa, 0x555555, 0x5555ff, 0x55ff55, 0x55ffff,
        0xff5555, 0xff55ff, 0xffff55, 0xffffff,
    };
    return part(palette[vga], 16, fb.red) | part(palette[vga], 8, fb.green) |
           part(palette[vga], 0, fb.blue);
}

// The colour of the dot of a cell that the screen should show.
static u32 want(u32 x, u32 y)
{
    u32 column = x / 8, row = y / GLYPH_HEIGHT, line = y % GLYPH_HEIGHT;
    u16 cell = screen_row(&screen, row)[column];
    bool set = glyphs[cell & 0xff][line] & 0x80 >> x % 8;
    if (!screen.hidden_cursor && column == screen.x && row == screen.y &&
        (line == 13 || line == 14))
        set = true;
    return colour(set ? cell >> 8 & 15 : cell >> 12);
}

static void assert_shown(void)
{
    show();
    for (u32 y = 0; y < pixels.rows * GLYPH_HEIGHT; y++) {
        for (u32 x = 0; x < pixels.cols * 8; x++) {
            u32 scale = pixels.scale, corner = random_below(scale * scale);
            u32 at =
                pixel(x * scale + corner % scale, y * scale + corner / scale);
            if (at != want(x, y))
                fail_msg("%ux%ux%u: dot %u, %u is %#x, not %#x", fb.width,
                         fb.height, fb.bits, x, y, at, want(x, y));
        }
    }
}

static void every_kind(void **state UNUSED)
{
    static const char *const pieces[] = {
        "a",       "word ",  "\r\n",      "\n\n",    "\033[31m", "\033[1;44m",
        "\033[0m", "\033[H", "\033[2J",   "\033[5S", "\033[L",   "\033[?25l",
        "\b",      "\t",     "\033[?25h", "\033[7m", "\xdb\xb0", "\033[3;4r",
    };
    for (u32 k = 0; k < ARRAY_SIZE(kinds); k++) {
        begin(&kinds[k]);
        assert_shown();
        for (int i = 0; i < 400; i++) {
            const char *p = pieces[random_below(ARRAY_SIZE(pieces))];
            screen_write(&screen, p, strlen(p));
            if (random_below(50) == 0)
                assert_shown();
            else if (random_below(4) == 0)
                show();
        }
        assert_shown();
        free(memory);
    }
}

static void sizes(void **state UNUSED)
{
    static const struct {
        u32 width, height, scale, rows, cols;
    } sizes[] = {
        { 640, 480, 1, 30, 80 },       { 1920, 1080, 1, 67, 240 },
        { 1920, 1200, 1, 75, 240 },    { 2560, 1440, 2, 45, 160 },
        { 3840, 2160, 2, 67, 240 },    { 7680, 4320, 4, 67, 240 },
        { 160, 32, 1, 2, 20 },         { 1200, 1920, 1, 120, 150 },
        { 32768, 32768, 8, 128, 140 },
    };
    for (u32 i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct boot_framebuffer f = { .pitch = sizes[i].width * 4,
                                      .width = sizes[i].width,
                                      .height = sizes[i].height,
                                      .bits = 32 };
        f.red.bits = f.green.bits = f.blue.bits = 8;
        assert_true(pixels_init(&pixels, &f, f.height, glyphs));
        assert_int_equal(pixels.scale, sizes[i].scale);
        assert_int_equal(pixels.rows, sizes[i].rows);
        assert_int_equal(pixels.cols, sizes[i].cols);
    }
    struct boot_framebuffer small = kinds[1];
    small.width = 159;
    assert_false(pixels_init(&pixels, &small, small.height, glyphs));
    assert_false(pixels_init(&pixels, &kinds[1], 31, glyphs));
}

// Only what differs is written: an unchanged cell keeps what a stray write
// left.
static void unchanged_cells_are_not_drawn(void **state UNUSED)
{
    begin(&kinds[1]);
    screen_write(&screen, "same\r\nsame\r\nother", 17);
    show();
    memset(memory + 8 * 4, 0x77, 8 * 4);         // the top of the second cell
    screen_write(&screen, "\033[1;1H\033[M", 9); // the second line moves up
    show();
    assert_int_equal(pixel(8, 0), 0x77777777);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind),
        cmocka_unit_test(sizes),
        cmocka_unit_test(unchanged_cells_are_not_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
