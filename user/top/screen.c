// The terminal: see screen.h.
#include "screen.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

// Used if the terminal does not report its size.
#define USUAL_ROWS 25
#define USUAL_COLUMNS 80
#define ROWS_MAX 500 // rows below are left empty

#define CUP "\033[%u;%uH"
#define CLEAR_SCREEN "\033[H\033[J" // CUP, ED
#define CLEAR_LINE "\033[K"         // EL
#define CONTROL_BYTES 32            // the longest of these with its numbers

static struct termios saved;
static volatile sig_atomic_t entered;

static struct page page, shown; // `page`: to draw on; `shown`: last sent
static bool known;              // false: the screen's contents are unknown
static char *output;            // buffer for a whole page
static size_t output_size;

int screen_enter(void)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &saved) < 0 || !isatty(STDOUT_FILENO))
        return -1;
    raw = saved;
    raw.c_lflag &= ~(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    entered = 1;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0) {
        entered = 0;
        return -1;
    }
    return screen_resize();
}

static int write_all(const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = write(STDOUT_FILENO, text, size);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            text += n;
            size -= n;
        }
    }
    return 0;
}

void screen_go_on(void)
{
    int error = errno;

    tcflow(STDOUT_FILENO, TCOON);
    errno = error;
}

void screen_leave(void)
{
    // CUP to the last row, whatever its number is; EL.
    static const char end[] = "\033[0m\033[999;1H\033[K\r\n";

    if (!entered)
        return;
    entered = 0;
    screen_go_on();
    write_all(end, sizeof(end) - 1);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
}

int screen_resize(void)
{
    struct winsize size = { 0 };

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 ||
        size.ws_col == 0)
        size =
            (struct winsize){ .ws_row = USUAL_ROWS, .ws_col = USUAL_COLUMNS };
    if (size.ws_row > ROWS_MAX)
        size.ws_row = ROWS_MAX;
    page_free(&page);
    page_free(&shown);
    free(output);
    output = malloc((size_t)(size.ws_row + 1) * (LINE_BYTES + CONTROL_BYTES));
    known = false;
    if (output && page_init(&page, size.ws_row, size.ws_col) &&
        page_init(&shown, size.ws_row, size.ws_col))
        return 0;
    errno = ENOMEM;
    return -1;
}

struct page *screen_page(void)
{
    page_clear(&page);
    return &page;
}

static void put(const char *text, size_t size)
{
    memcpy(output + output_size, text, size);
    output_size += size;
}

static void move(unsigned row, unsigned column)
{
    output_size +=
        snprintf(output + output_size, CONTROL_BYTES, CUP, row + 1, column + 1);
}

static void put_line(unsigned row)
{
    static const struct line empty;
    const struct line *l = row < page.used ? &page.lines[row] : &empty;
    struct line *old = &shown.lines[row];

    if (strcmp(l->text, old->text) == 0)
        return;
    move(row, 0);
    put(l->text, l->size);
    // In the last column EL would clear the character just written.
    if (l->width < page.columns && l->width < old->width)
        put(CLEAR_LINE, sizeof(CLEAR_LINE) - 1);
    *old = *l;
}

int screen_show(unsigned cursor_row)
{
    unsigned column = cursor_row < page.used ? page.lines[cursor_row].width : 0;

    output_size = 0;
    if (!known) {
        put(CLEAR_SCREEN, sizeof(CLEAR_SCREEN) - 1);
        for (unsigned row = 0; row < shown.rows; row++)
            shown.lines[row] = (struct line){ 0 };
        known = true;
    }
    for (unsigned row = 0; row < page.rows; row++)
        put_line(row);
    move(cursor_row, column < page.columns ? column : page.columns - 1);
    return write_all(output, output_size);
}
