// The interactive top: a loop of refreshes, keys and signals.
//
// Signals are blocked except while top waits for a key or for the screen, so
// that no signal is missed, and none interrupts other code. Whatever ends top,
// the terminal's settings are restored.
#include "top.h"

#include "draw.h"
#include "screen.h"

#include "user/libstrobe/strobe.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#define FIRST_DELAY 0.3 // seconds to the first screen (two data sets)
#define NS_PER_SECOND 1000000000L

// Signals that were received and are not yet handled.
static volatile sig_atomic_t ending, stopping, resizing;

static void on_signal(int number)
{
    if (number == SIGWINCH) {
        resizing = 1;
        return;
    }
    if (number == SIGTSTP)
        stopping = 1;
    else
        ending = number;
    screen_go_on();
}

// Ends top by the signal's default action, as if top had not caught it.
static void die_of_signal(int number)
{
    sigset_t set;

    screen_leave();
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void catch (int number, void (*handler)(int), sigset_t *blocked)
{
    struct sigaction action = { .sa_handler = handler };

    sigaction(number, NULL, &action);
    if (action.sa_handler == SIG_IGN) // ignored by the parent's choice (nohup)
        return;
    action = (struct sigaction){ .sa_handler = handler };
    sigaction(number, &action, NULL);
    if (blocked)
        sigaddset(blocked, number);
}

// Returns the signal mask for waiting, in which these signals are not blocked.
static sigset_t catch_signals(void)
{
    static const int asked[] = { SIGINT,  SIGTERM,  SIGHUP,
                                 SIGQUIT, SIGWINCH, SIGTSTP };
    static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    sigset_t blocked, waiting;

    sigemptyset(&blocked);
    for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
        catch (asked[i], on_signal, &blocked);
    for (unsigned i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
        catch (crashes[i], die_of_signal, NULL);
    sigprocmask(SIG_BLOCK, &blocked, &waiting);
    for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
        sigdelset(&waiting, asked[i]);
    return waiting;
}

static _Noreturn void fail_without_screen(int error)
{
    screen_leave(); // the message must not be on the page
    if (error == ENOMEM)
        fail(1, "not enough memory for the screen: end some tasks");
    fail(1, "this is not a terminal: use -b to print into files and pipes");
}

static void enter(void)
{
    if (screen_enter() < 0)
        fail_without_screen(errno);
}

// ^Z: restores the terminal, stops, and takes the terminal over when continued.
static void stop(void)
{
    stopping = 0;
    die_of_signal(SIGTSTP); // only stops top, which continues here
    catch (SIGTSTP, on_signal, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    enter();
}

// ---- time

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + (double)t.tv_nsec / NS_PER_SECOND;
}

// Waits until `deadline`, a key or a signal. Returns true if a key can be read.
static bool wait_until(double deadline, const sigset_t *mask)
{
    double left = deadline - now();
    fd_set readable;

    if (ending || stopping || resizing) // received while the screen was drawn
        return false;
    if (left < 0)
        left = 0;
    struct timespec timeout = {
        .tv_sec = (time_t)left,
        .tv_nsec = (long)((left - (time_t)left) * NS_PER_SECOND),
    };
    FD_ZERO(&readable);
    FD_SET(STDIN_FILENO, &readable);
    return pselect(STDIN_FILENO + 1, &readable, NULL, NULL, &timeout, mask) > 0;
}

// ---- the screen

// Draws the prompt or the message if there is one, else the status line.
static void draw_bottom_line(struct page *p, const struct top *t)
{
    if (t->prompt.question) {
        page_line(p);
        page_put(p, STYLE_BOLD, "%s", t->prompt.question);
        page_put(p, STYLE_PLAIN, "%s", t->prompt.text);
    } else if (t->message[0] != '\0') {
        page_line(p);
        page_put(p, STYLE_REVERSE, "%s", t->message);
    } else {
        draw_status(p, &t->choice, t->delay);
    }
}

static void draw(struct top *t, const sigset_t *waiting)
{
    struct page *p = screen_page();
    unsigned status_row = 0;

    if (!rows_make(&t->comparison, &t->choice, &t->rows))
        snprintf(t->message, sizeof(t->message),
                 "not enough memory for the list: end some tasks (k)");
    if (t->first >= t->rows.count)
        t->first = t->rows.count > 0 ? t->rows.count - 1 : 0;
    if (t->help) {
        draw_help(p);
    } else {
        draw_header(p, &t->comparison);
        status_row = p->used;
        draw_bottom_line(p, t);
        t->page_rows = page_rows_left(p) > 1 ? page_rows_left(p) - 1 : 1;
        draw_rows(p, &t->comparison, &t->choice, &t->rows, t->first);
    }
    if (status_row >= p->rows)
        status_row = p->rows - 1;
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, waiting, &blocked);
    if (screen_show(status_row) < 0)
        t->quit = true;
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static void read_keys(struct top *t)
{
    char bytes[64];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

    if (n > 0)
        keys_input(t, bytes, n);
    else if (n == 0 || errno != EINTR)
        t->quit = true; // the terminal was closed
}

static void handle_signals(struct top *t)
{
    if (ending)
        die_of_signal(ending);
    if (stopping) {
        stop();
        t->refresh_now = true;
    }
    if (resizing) {
        resizing = 0;
        if (screen_resize() < 0)
            fail_without_screen(ENOMEM);
    }
}

int interactive(struct top *t)
{
    sigset_t waiting = catch_signals();
    double next;

    atexit(screen_leave);
    enter();
    top_refresh(t);
    next = now() + (t->delay < FIRST_DELAY ? t->delay : FIRST_DELAY);
    bool drawn = false; // nothing to draw until there are two data sets
    while (!t->quit) {
        if (wait_until(next, &waiting))
            read_keys(t);
        handle_signals(t);
        if (t->quit)
            break;
        if (t->refresh_now || now() >= next) {
            if (t->iterations == 0)
                break;
            t->iterations -= t->iterations > 0;
            t->refresh_now = false;
            top_refresh(t);
            next = now() + t->delay;
            drawn = true;
        }
        if (drawn)
            draw(t, &waiting);
    }
    screen_leave();
    return 0;
}
