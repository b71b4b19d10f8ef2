// The VGA console's text screen and the keyboard's tables, without the devices.
// link: arch/i386/dev/screen.c arch/i386/dev/screen_cells.c
// link: arch/i386/dev/cp437.c kernel/base/keymap.c kernel/base/layout.c
// link: lib/utf8.c
#include "test.h"

#include "arch/i386/dev/screen.h"
#include "kernel/base/keymap.h"

// --- screen

#define SCREEN_ROWS 25u
#define SCREEN_COLS 80u

static struct screen screen;
#define HISTORY 30u
static u16 cells[(SCREEN_ROWS + HISTORY) * SCREEN_COLS];

static void fresh(const char *text)
{
    screen_init(&screen, cells, ARRAY_SIZE(cells), SCREEN_ROWS, SCREEN_COLS);
    screen_write(&screen, text, strlen(text));
}

static void assert_row(u32 y, const char *want)
{
    char row[SCREEN_COLS + 1] = "";
    for (u32 x = 0; x < SCREEN_COLS; x++)
        row[x] = (char)screen_row(&screen, y)[x];
    for (size_t n = SCREEN_COLS; n > 0 && row[n - 1] == ' '; n--)
        row[n - 1] = '\0';
    assert_string_equal(row, want);
}

static void assert_cursor(u32 x, u32 y)
{
    assert_int_equal(screen.x, x);
    assert_int_equal(screen.y, y);
}

static void text_and_controls(void **state UNUSED)
{
    fresh("one\r\n\ttab\b\b!\rx");
    assert_row(0, "one");
    assert_row(1, "x       t!b");
    assert_cursor(1, 1);
}

static void the_last_column_wraps_late(void **state UNUSED)
{
    fresh("\033[79Gabc");
    assert_row(1, "c");
    fresh("\033[79Gab\rc");
    assert_row(1, "");
    assert_cursor(1, 0);
    fresh("\033[?7l\033[79Gabc");
    assert_row(1, "");
    assert_int_equal((char)screen_row(&screen, 0)[79], 'c');
}

static void the_cursor_moves_and_stops_at_edges(void **state UNUSED)
{
    fresh("\033[5;10H");
    assert_cursor(9, 4);
    fresh("\033[5;10H\033[2A\033[3D\033[4B\033[C");
    assert_cursor(7, 6);
    fresh("\033[99;999H");
    assert_cursor(79, 24);
    fresh("\033[99A\033[99D\033[99999999999999B");
    assert_cursor(0, 24);
    fresh("\033[7;3H\0337\033[H\0338");
    assert_cursor(2, 6);
    fresh("\033[4d\033[8G\033[Z");
    assert_cursor(0, 3);
}

static void erasing(void **state UNUSED)
{
    fresh("abcdef\033[3D\033[K");
    assert_row(0, "abc");
    fresh("abcdef\033[3D\033[1K");
    assert_row(0, "    ef");
    fresh("a\r\nb\r\nc\033[2;1H\033[J");
    assert_row(0, "a");
    assert_row(1, "");
    assert_row(2, "");
    fresh("a\r\nb\r\nc\033[2J");
    assert_row(0, "");
    assert_cursor(1, 2);
    fresh("abcdef\033[1;2H\033[2X");
    assert_row(0, "a  def");
}

static void inserting_and_deleting(void **state UNUSED)
{
    fresh("abcdef\033[1;3H\033[2@");
    assert_row(0, "ab  cdef");
    fresh("abcdef\033[1;3H\033[2P");
    assert_row(0, "abef");
    fresh("a\r\nb\r\nc\033[2;1H\033[L");
    assert_row(1, "");
    assert_row(2, "b");
    fresh("a\r\nb\r\nc\033[1;1H\033[M");
    assert_row(0, "b");
    assert_row(1, "c");
    fresh("abc\033[999P\033[H\033[999@\033[999L\033[999M");
    assert_row(0, "");
}

static void scrolling(void **state UNUSED)
{
    fresh("first\033[25;1H\nlast");
    assert_row(0, "");
    assert_row(24, "last");
    assert_int_equal(screen.scrolled, 1);
    // Within a region; rows outside do not move.
    fresh("a\r\nb\r\nc\r\nd\033[2;3r\033[3;1H\nx");
    assert_row(0, "a");
    assert_row(1, "c");
    assert_row(2, "x");
    assert_row(3, "d");
    assert_int_equal(screen.scrolled, 0);
    fresh("a\r\nb\r\nc\033[2;3r\033[2;1H\033Mx");
    assert_row(0, "a");
    assert_row(1, "x");
    assert_row(2, "b");
    fresh("\033[9;3ra"); // not a valid region
    assert_int_equal(screen.bottom, SCREEN_ROWS - 1);
}

static u8 attribute(void)
{
    return screen_row(&screen, 0)[0] >> 8;
}

static void colours(void **state UNUSED)
{
    fresh("x");
    assert_int_equal(attribute(), 0x07);
    fresh("\033[31;44mx");
    assert_int_equal(attribute(), 0x14);
    fresh("\033[1;32mx");
    assert_int_equal(attribute(), 0x0a);
    fresh("\033[7mx");
    assert_int_equal(attribute(), 0x70);
    fresh("\033[1;7;31m\033[mx");
    assert_int_equal(attribute(), 0x07);
    fresh("\033[38;5;7;31mx"); // this 7 is not "reverse"
    assert_int_equal(attribute(), 0x04);
    fresh("\033[38;2;7;7;7;31mx");
    assert_int_equal(attribute(), 0x04);
}

static void modes_and_the_unknown(void **state UNUSED)
{
    fresh("\033[?25l");
    assert_true(screen.hidden_cursor);
    fresh("\033[?25l\033[?25h");
    assert_false(screen.hidden_cursor);
    fresh("\033[?1049h\033[>c\033[5 q\033(B\033]0;title\aok\033[6n");
    assert_row(0, "ok");
    fresh("\033[1\0302;\033[12\033[2Cz");
    assert_row(0, "2;  z");
}

static const char *piece(void)
{
    static const char *const pieces[] = {
        "a",      "Z",     "word ", "\n",          "\r\n",  "\t",
        "\b",     "\033[", "\033",  ";",           "?",     "1",
        "7",      "25",    "80",    "H",           "J",     "K",
        "L",      "M",     "P",     "@",           "S",     "T",
        "X",      "m",     "r",     "h",           "l",     "\033[3;7r",
        "\033[r", "\033M", "\033D", "\0337",       "\0338", "\033[2J",
        "\xff",   "\033]", "\a",    "\033[25;80H",
    };
    return pieces[random_below(ARRAY_SIZE(pieces))];
}

// The dirty rows and the scroll count, applied to a copy, give the screen.
static void owners_see_every_change(void **state UNUSED)
{
    static u16 copy[SCREEN_ROWS][SCREEN_COLS];
    fresh("");
    for (int i = 0; i < 200000; i++) {
        const char *p = piece();
        screen_write(&screen, p, strlen(p));
        if (random_below(8))
            continue;
        screen_look(&screen, (int)random_below(6) - 4);
        u32 up = MIN(screen.scrolled, SCREEN_ROWS);
        memmove(copy, copy[up], (SCREEN_ROWS - up) * sizeof(copy[0]));
        for (u32 y = 0; y < SCREEN_ROWS; y++) {
            if (screen.dirty[y])
                memcpy(copy[y], screen_row(&screen, y), sizeof(copy[y]));
            assert_memory_equal(copy[y], screen_row(&screen, y),
                                sizeof(copy[y]));
        }
        memset(screen.dirty, 0, sizeof(screen.dirty));
        screen.scrolled = 0;
        assert_true(screen.x < SCREEN_COLS && screen.y < SCREEN_ROWS);
        assert_true(screen.top <= screen.bottom);
    }
}

// --- earlier lines

static void write_numbers(u32 from, u32 to)
{
    char line[16];
    for (; from <= to; from++)
        screen_write(&screen, line,
                     (size_t)snprintf(line, sizeof(line), "\r\n%u", from));
}

static void earlier_lines(void **state UNUSED)
{
    fresh("0");
    screen_look(&screen, -1); // there are none
    assert_row(0, "0");
    assert_true(screen_cursor_shown(&screen));
    write_numbers(1, 40); // 16 is at the top
    assert_row(0, "16");
    screen_look(&screen, -1);
    assert_row(0, "4");
    assert_row(11, "15");
    assert_row(24, "28");
    assert_false(screen_cursor_shown(&screen));
    screen_look(&screen, -1);
    assert_row(0, "0");
    screen_look(&screen, 1);
    assert_row(0, "12");
    screen_look(&screen, 9);
    assert_row(0, "16");
    assert_true(screen_cursor_shown(&screen));

    screen_look(&screen, -1);
    memset(screen.dirty, false, sizeof(screen.dirty));
    write_numbers(41, 41);
    assert_row(0, "17");
    assert_row(24, "41");
    for (u32 y = 0; y < SCREEN_ROWS; y++) // all were others
        assert_true(screen.dirty[y]);

    write_numbers(42, 100); // 76 is at the top
    screen_look(&screen, -9);
    assert_row(0, "46"); // HISTORY lines
    screen_look(&screen, 0);
    assert_row(0, "76");

    // Of the whole screen only; what is erased or deleted is not kept.
    static const char changes[] = "\033[2;9r\033[9;1H\n\n\033[r"
                                  "\033[2;1H\033[M\033[2J\033[L";
    screen_write(&screen, changes, sizeof(changes) - 1);
    screen_look(&screen, -9);
    assert_row(0, "46");
    assert_row(24, "70");
    screen_write(&screen, "\033[3J", 4);
    screen_look(&screen, -1);
    assert_row(0, "");
    assert_int_equal(screen.back, 0);

    screen_init(&screen, cells, SCREEN_ROWS * SCREEN_COLS, SCREEN_ROWS,
                SCREEN_COLS);
    write_numbers(1, 40); // without room for any
    screen_look(&screen, -1);
    assert_row(0, "16");
}

// The lines kept are those that were at the top when the screen moved. Of one
// byte, the move comes before the writing.
static void no_earlier_line_is_lost(void **state UNUSED)
{
    static u16 rows[SCREEN_ROWS][SCREEN_COLS];
    static u16 kept[1000][SCREEN_COLS]; // a ring
    u32 count = 0;
    fresh("");
    for (int i = 0; i < 100000; i++) {
        const char *p = random_below(3) ? piece() : "\r\n";
        for (; *p; p++) {
            for (u32 y = 0; y < SCREEN_ROWS; y++)
                memcpy(rows[y], screen_row(&screen, y), sizeof(rows[y]));
            screen.scrolled = 0;
            u32 before = screen.history;
            screen_write(&screen, p, 1);
            if (screen.history < before)
                count = 0; // erased
            for (u32 y = 0; y < screen.scrolled; y++)
                memcpy(kept[count++ % 1000], rows[y], sizeof(rows[y]));
        }
        if (random_below(20))
            continue;
        assert_int_equal(screen.history, MIN(count, HISTORY));
        screen_look(&screen, -9);
        for (u32 y = 0; y < MIN(screen.history, SCREEN_ROWS); y++)
            assert_memory_equal(screen_row(&screen, y),
                                kept[(count - screen.history + y) % 1000],
                                sizeof(rows[y]));
        screen_look(&screen, 0);
    }
    assert_true(count > HISTORY);
}

// UTF-8 as the font's characters; other bytes are such characters.
static void characters(void **state UNUSED)
{
    fresh("╔═╗ äßé €ł中\xc9\xcd\xff\xe2z\xe2\x95\r\nx\xc4");
    assert_row(0, "\xc9\xcd\xbb \x84\xe1\x82 El?\xc9\xcd\xff\xe2z\xe2\x95");
    assert_row(1, "x"); // the last one may go on
    screen_write(&screen,
                 "\x8d"
                 "y",
                 2);
    assert_row(1, "xcy"); // c with caron
    fresh("\xc2\x9b"
          "31m\xe0\x83\xa4\xf4\x90\x80\x80\xed\xa0\x80|");
    assert_row(0, "31m\xe0\x83\xa4\xf4\x90\x80\x80\xed\xa0\x80|");
    for (u32 i = 0; i < 300000; i++) {
        char c = (char)(random_below(4) ? 0x80 + random_below(128)
                                        : random_below(256));
        screen_write(&screen, &c, 1);
        assert_true(screen.held_count < UTF8_MAX);
    }
}

// --- keyboard

static const struct layout *layout;

static void type(const char *codes, size_t n, const char *want)
{
    struct keymap k = { .num_lock = false, .layout = layout };
    char all[100], text[KEY_TEXT_MAX];
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        size_t got = keymap_code(&k, (u8)codes[i], text);
        assert_true(got <= KEY_TEXT_MAX);
        memcpy(all + length, text, got);
        length += got;
    }
    assert_int_equal(length, strlen(want));
    assert_memory_equal(all, want, length);
}
#define TYPE(codes, want) type(codes, sizeof(codes) - 1, want)

static void keys(void **state UNUSED)
{
    TYPE("\x1e\x9e\x30\xb0\x1c\x9c", "ab\r");
    TYPE("\x2a\x1e\x9e\xaa\x1e", "Aa");
    TYPE("\x36\x03\xb6\x03", "@2");
    TYPE("\x3a\xba\x1e\x02\x2a\x1e\xaa\x3a\x1e", "A1aa");
    TYPE("\x1d\x2e\xae\x9d\x2e", "\003c");
    TYPE("\xe0\x1d\x1a\xe0\x9d\x1a", "\033[");
    TYPE("\x38\x1e\xb8\x1e", "\033aa");
    TYPE("\x0e\x0f\x01", "\177\t\033");
    TYPE("\xe0\x48\xe0\xc8\xe0\x50\xe0\x4d\xe0\x4b",
         "\033[A\033[B\033[C\033[D");
    TYPE("\xe0\x2a\xe0\x53\xe0\xd3\xe0\xaa\x1e", "\033[3~a");
    TYPE("\x3b\x44\x57", "\033[[A\033[21~\033[23~");
    TYPE("\x47\x45\xc5\x47\xe0\x47", "\033[1~7\033[1~");
    TYPE("\xe1\x1d\x45\xe1\x9d\xc5\x1e", "a"); // Pause
    TYPE("\x56\x2a\x56", "<>");
    TYPE("\x7f\x5a\x59\xfa\x00", "");
}

// What Shift+PgUp and Shift+PgDn ask for; they give no text.
static int look(const char *codes)
{
    struct keymap k = { 0 };
    char text[KEY_TEXT_MAX];
    for (; *codes; codes++)
        assert_int_equal(keymap_code(&k, (u8)*codes, text), 0);
    return k.look;
}

static void looks(void **state UNUSED)
{
    assert_int_equal(look("\x2a\xe0\x49"), -1);
    assert_int_equal(look("\x36\xe0\x51"), 1);
    // With Num Lock a keyboard says that Shift is up.
    assert_int_equal(look("\x2a\xe0\xaa\xe0\x49"), -1);
    assert_int_equal(look("\x2a\x49"), -1); // the keypad's
    assert_int_equal(look("\x2a\xaa"), 0);
    TYPE("\x2a\xaa\xe0\x49\xe0\x51", "\033[5~\033[6~");
    TYPE("\x2a\xe0\x47", "\033[1~");
}

#define ALTGR "\xe0\x38"

static void layouts(void **state UNUSED)
{
    const char *names = layout_names;
    for (; *names; names += 2 + (names[2] == ' ')) {
        char name[3] = { names[0], names[1], 0 };
        layout = layout_find(name);
        assert_non_null(layout);
        for (u32 i = 0; i < 4; i++) {
            const char *text = layout->levels[i];
            u32 n = 0;
            while (text && utf8_next(&text))
                n++;
            assert_int_equal(n, layout->levels[i] ? LAYOUT_KEYS : 0);
        }
        for (u32 code = 0; code < 128; code++)
            for (u32 i = 0; i < 4; i++)
                if (is_dead(layout_character(layout, (u8)code, i)))
                    assert_true(layout_compose(
                        layout_character(layout, (u8)code, i), ' '));
    }
    assert_null(layout_find("xx"));

    layout = layout_find("de");
    TYPE("\x15\x2c\x1a\x28\x0c", "zyüäß");
    TYPE("\x2a\x1a\x08", "Ü/");
    TYPE("\x3a\x1a\x0c\x02\x1e\x2a\x1e", "Üß1Aa");   // Caps Lock
    TYPE(ALTGR "\x10\x08\x09\x56\x12\x11", "@{[|€"); // no AltGr+w
    TYPE("\x0d\x12\x0d\x39\x0d\x19", "é´´p");
    TYPE("\x29\x1e\x29\x29", "â^");
    TYPE("\x2a\x0d\x1e\xaa", "À");
    TYPE("\x1d\x2c\x1d\x1a", "\031ü");
    TYPE("\x38\x1e\xb8" ALTGR "\x1e", "\033a"); // left Alt, no AltGr+a
    layout = layout_find("pl");
    TYPE(ALTGR "\x1e\x2d\x26\x2a\x1e\x18", "ąźłĄÓ");
    TYPE("\x3a" ALTGR "\x1e", "Ą");
    layout = layout_find("cz");
    TYPE("\x03\x04\x27\x2b\x12", "ěšůë");
    TYPE("\x2a\x0d\x20\x29\x16\x03", "ĎŮ2");
    TYPE(ALTGR "\x2f\x30\x2e\x27", "@{&$");
    layout = layout_find("fr");
    TYPE("\x10\x11\x1e\x27\x03\x1a\x12\x2b", "azqméê*");
    TYPE("\x2a\x03\x1a\x18\x32", "2Ö?");
    TYPE(ALTGR "\x0b\x12\x1b", "@€¤");
    layout = NULL; // us: the right Alt is as the left one
    TYPE(ALTGR "\x1e", "\033a");
}

// The request of Alt+SysRq and a letter, which give no text.
static char request(const char *codes)
{
    struct keymap k = { 0 };
    char text[KEY_TEXT_MAX];
    for (; *codes; codes++)
        assert_int_equal(keymap_code(&k, (u8)*codes, text), 0);
    return k.request;
}

static void requests(void **state UNUSED)
{
    assert_int_equal(request("\x38\x54\x26"), 'l');
    assert_int_equal(request("\x38\x54\xd4\x14\x94\xb8"), 't');
    assert_int_equal(request("\xe0\x38\xe0\x37\x32"), 'm');
    assert_int_equal(request("\x54\xd4"), 0);
    assert_int_equal(request("\x38\xb8\x54\xd4"), 0);
    assert_int_equal(request("\x38\x54\xd4\xb8"), 0);
    TYPE("\x38\x54\x26\xa6\xd4\xb8\x26", "l"); // Alt is released
    TYPE("\xe0\x37\x26", "l");
}

static void no_code_sequence_overruns(void **state UNUSED)
{
    struct keymap k = { 0 };
    char text[KEY_TEXT_MAX];
    static const char names[][3] = { "us", "de", "pl", "cz", "fr" };
    for (int i = 0; i < 1000000; i++) {
        k.layout = layout_find(names[i % ARRAY_SIZE(names)]);
        assert_true(keymap_code(&k, (u8)random_below(256), text) <=
                    KEY_TEXT_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_controls),
        cmocka_unit_test(the_last_column_wraps_late),
        cmocka_unit_test(the_cursor_moves_and_stops_at_edges),
        cmocka_unit_test(erasing),
        cmocka_unit_test(inserting_and_deleting),
        cmocka_unit_test(scrolling),
        cmocka_unit_test(colours),
        cmocka_unit_test(modes_and_the_unknown),
        cmocka_unit_test(owners_see_every_change),
        cmocka_unit_test(earlier_lines),
        cmocka_unit_test(no_earlier_line_is_lost),
        cmocka_unit_test(characters),
        cmocka_unit_test(keys),
        cmocka_unit_test(looks),
        cmocka_unit_test(layouts),
        cmocka_unit_test(requests),
        cmocka_unit_test(no_code_sequence_overruns),
    };
    random_init();
    return cmocka_run_group_tests_name("screen", tests, NULL, NULL);
}
