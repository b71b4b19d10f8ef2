// Keys: views, order, filter, prompts, signals and nice values.
#include "top.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#define ESCAPE 033
#define BACKSPACE 010
#define DELETE 0177
#define KILL_LINE 025 // ^U
#define PAGE_UP '5'   // ESC [ 5 ~
#define PAGE_DOWN '6' // ESC [ 6 ~
#define NICE_MIN (-20)
#define NICE_MAX 19
#define SIGNAL_MAX 64

#define SAY(t, ...) snprintf((t)->message, sizeof((t)->message), __VA_ARGS__)

static void ask(struct top *t, const char *question,
                void (*done)(struct top *t, const char *answer))
{
    t->prompt = (struct prompt){ .question = question, .done = done };
}

static bool parse_number(const char *text, long min, long max, long *out)
{
    char *end;

    errno = 0;
    *out = strtol(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && *out >= min &&
           *out <= max;
}

// ---- answers

static void set_filter(struct top *t, const char *answer)
{
    snprintf(t->choice.filter, sizeof(t->choice.filter), "%s", answer);
    t->first = 0;
}

static void set_delay(struct top *t, const char *answer)
{
    if (answer[0] != '\0' && !parse_delay(answer, &t->delay))
        SAY(t, "%s: not a delay; from %g to %g seconds", answer, DELAY_MIN,
            DELAY_MAX);
}

// Takes the id of the task that a signal or nice value is for. Returns false if
// the answer is empty or invalid.
static bool take_target(struct top *t, const char *answer)
{
    long id;

    if (answer[0] == '\0')
        return false;
    if (!parse_number(answer, 1, INT32_MAX, &id)) {
        SAY(t, "%s: not a task's number (see the column ID of view t)", answer);
        return false;
    }
    t->target = (uint32_t)id;
    return true;
}

static void failed(struct top *t, const char *what)
{
    if (errno == ESRCH)
        SAY(t, "%s %" PRIu32 ": no such task", what, t->target);
    else if (errno == EPERM || errno == EACCES)
        SAY(t, "%s %" PRIu32 ": not allowed; only root may", what, t->target);
    else
        SAY(t, "%s %" PRIu32 ": %s", what, t->target, strerror(errno));
}

static long signal_by_name(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } names[] = {
        { "HUP", SIGHUP },   { "INT", SIGINT },   { "QUIT", SIGQUIT },
        { "KILL", SIGKILL }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
        { "TERM", SIGTERM }, { "CONT", SIGCONT }, { "STOP", SIGSTOP },
    };

    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcasecmp(names[i].name, name) == 0)
            return names[i].number;
    }
    return -1;
}

static void send_signal(struct top *t, const char *answer)
{
    long number = signal_by_name(answer);

    if (answer[0] == '\0')
        number = SIGTERM;
    if (number < 0 && !parse_number(answer, 1, SIGNAL_MAX, &number))
        SAY(t, "%s: not a signal; 1 to %d, or TERM, KILL, ...", answer,
            SIGNAL_MAX);
    else if (kill((pid_t)t->target, (int)number) < 0)
        failed(t, "kill");
    else
        t->refresh_now = true;
}

static void ask_signal(struct top *t, const char *answer)
{
    if (take_target(t, answer))
        ask(t, "Signal (15, TERM): ", send_signal);
}

static void set_nice(struct top *t, const char *answer)
{
    long nice;

    if (!parse_number(answer, NICE_MIN, NICE_MAX, &nice))
        SAY(t, "%s: not a nice value; from %d, the most urgent, to %d", answer,
            NICE_MIN, NICE_MAX);
    else if (setpriority(PRIO_PROCESS, t->target, (int)nice) < 0)
        failed(t, "renice");
    else
        t->refresh_now = true;
}

static void ask_nice(struct top *t, const char *answer)
{
    if (take_target(t, answer))
        ask(t, "Nice value (-20 to 19): ", set_nice);
}

// ---- prompts

static void prompt_key(struct top *t, char key)
{
    struct prompt *p = &t->prompt;

    if (key == '\r' || key == '\n') {
        struct prompt answered = *p;
        p->question = NULL;
        answered.done(t, answered.text);
    } else if (key == ESCAPE) {
        p->question = NULL;
    } else if (key == KILL_LINE) {
        p->size = 0;
    } else if (key == BACKSPACE || key == DELETE) {
        p->size -= p->size > 0;
    } else if (isprint((unsigned char)key) && p->size + 1 < FILTER_MAX) {
        p->text[p->size++] = key;
    }
    p->text[p->size] = '\0';
}

// ---- commands

static void change_sort(struct top *t, int column)
{
    if (column < 0 || column >= (int)t->choice.view->column_count)
        return;
    t->choice.sort = (unsigned)column;
    t->choice.reverse = false;
    t->first = 0;
}

// Scrolls down; up if negative.
static void scroll(struct top *t, long rows)
{
    long last = (long)t->rows.count - 1, first = (long)t->first + rows;

    if (first > last)
        first = last;
    t->first = first > 0 ? (size_t)first : 0;
}

static void command(struct top *t, char key)
{
    struct choice *c = &t->choice;
    const struct view *v = view_by_key(key);
    int column = view_column_by_letter(c->view, key);

    if (v) {
        choose_view(c, v);
        t->first = 0;
        return;
    }
    switch (key) {
    case 'P':
    case 'M':
    case 'T':
    case 'N':
        if (column < 0)
            SAY(t, "%c: this view has no such column; < and > choose one", key);
        change_sort(t, column);
        break;
    case '<':
        change_sort(t, (int)c->sort - 1);
        break;
    case '>':
        change_sort(t, (int)c->sort + 1);
        break;
    case 'R':
        c->reverse = !c->reverse;
        break;
    case 'a':
        c->active_only = !c->active_only;
        t->first = 0;
        break;
    case '/':
        ask(t, "Show what contains: ", set_filter);
        break;
    case 'd':
        ask(t, "Delay in seconds: ", set_delay);
        break;
    case 'k':
        ask(t, "Send a signal to task: ", ask_signal);
        break;
    case 'r':
        ask(t, "Change the nice value of task: ", ask_nice);
        break;
    case ' ':
        t->refresh_now = true;
        break;
    case 'h':
    case '?':
        t->help = true;
        break;
    case 'q':
        t->quit = true;
        break;
    default:
        if (isprint((unsigned char)key))
            SAY(t, "%c: unknown key; h shows the keys", key);
    }
}

// Parses the escape sequences of arrow and page keys: ESC [, optional digits,
// and a letter or ~. A sequence may arrive in parts. Returns true if the key
// belongs to a sequence.
static bool escape_sequence(struct top *t, char key)
{
    if (t->escape == ESCAPE && key == '[') {
        t->escape = '[';
        t->parameter = '\0';
        return true;
    }
    if (t->escape != '[') {
        t->escape = key == ESCAPE ? ESCAPE : '\0';
        return false;
    }
    if (isdigit((unsigned char)key) || key == ';') {
        t->parameter = key;
        return true;
    }
    t->escape = '\0';
    if (key == 'A')
        scroll(t, -1);
    else if (key == 'B')
        scroll(t, 1);
    else if (key == '~' && t->parameter == PAGE_UP)
        scroll(t, -(long)t->page_rows);
    else if (key == '~' && t->parameter == PAGE_DOWN)
        scroll(t, (long)t->page_rows);
    return true;
}

void keys_input(struct top *t, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count && !t->quit; i++) {
        if (escape_sequence(t, bytes[i]))
            continue;
        t->message[0] = '\0';
        if (t->help)
            t->help = false;
        else if (t->prompt.question)
            prompt_key(t, bytes[i]);
        else
            command(t, bytes[i]);
    }
}
