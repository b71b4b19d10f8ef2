// Options from a table: see options.h.
#define _GNU_SOURCE // getopt_long
#include "options.h"

#include "strobe.h"
#include "sysinfo.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define SCREEN_COLUMNS 79
#define SCREEN_LINES 25
#define MESSAGE_LINES 3 // beside the help: an error message and the prompt
#define GAP 3           // columns between an option and its meaning
#define NAMES_SIZE 64   // bytes of "  -t, --task task_id"

static const struct tool_option help = {
    .letter = 'h', .name = "help", .meaning = "Print this usage information"
};

static bool is_title(const struct tool_option *o)
{
    return o->letter == 0 && !o->name && o->meaning;
}

static bool is_end(const struct tool_option *o)
{
    return o->letter == 0 && !o->name && !o->meaning;
}

static bool is_optional(const struct tool_option *o)
{
    return o->argument && o->argument[0] == '[';
}

// kgmon has a -h of its own: there the help has only its long name.
static struct tool_option help_of(const struct tool *tool)
{
    struct tool_option own = help;

    for (const struct tool_option *o = tool->options; !is_end(o); o++) {
        if (o->letter == own.letter)
            own.letter = 0;
    }
    return own;
}

// ---- help text

// Prints words from `column` on, and breaks lines that exceed the screen.
static void print_words(FILE *out, const char *text, int column)
{
    int at = column;

    while (*text) {
        int blanks = (int)strspn(text, " ");
        int word = (int)strcspn(text + blanks, " \n");
        if (at > column && at + blanks + word > SCREEN_COLUMNS) {
            text += blanks;
            blanks = 0;
            fprintf(out, "\n%*s", column, "");
            at = column;
        }
        fprintf(out, "%.*s", blanks + word, text);
        at += blanks + word;
        text += blanks + word;
        if (*text == '\n') {
            putc(*text++, out);
            at = column;
        }
    }
}

// "  -t, --task task_id". Returns its length.
static int name_option(char out[NAMES_SIZE], const struct tool_option *o)
{
    const char letter[] = { '-', o->letter, '\0' };
    const char *argument = o->argument ? o->argument : "";

    return snprintf(out, NAMES_SIZE, "  %s%s%s%s%s%s",
                    o->letter ? letter : "    ",
                    o->letter && o->name ? ", " : "", o->name ? "--" : "",
                    o->name ? o->name : "",
                    *argument && !is_optional(o) ? " " : "", argument);
}

static void print_option(FILE *out, const struct tool_option *o, int width)
{
    char names[NAMES_SIZE];

    if (!o->meaning)
        return;
    if (is_title(o)) {
        print_words(out, o->meaning, 0);
    } else {
        name_option(names, o);
        fprintf(out, "%-*s", width, names);
        print_words(out, o->meaning, width);
    }
    putc('\n', out);
}

static void print_help(FILE *out, const struct tool *tool)
{
    struct tool_option own_help = help_of(tool);
    char names[NAMES_SIZE];
    int widest = name_option(names, &own_help);

    for (const struct tool_option *o = tool->options; !is_end(o); o++) {
        int width = o->meaning ? name_option(names, o) : 0;
        widest = width > widest ? width : widest;
    }
    fprintf(out, "Usage: %s\n", tool->usage);
    if (!is_title(tool->options))
        fputs("Options:\n", out);
    for (const struct tool_option *o = tool->options; !is_end(o); o++)
        print_option(out, o, widest + GAP);
    print_option(out, &own_help, widest + GAP);
    if (tool->notes)
        print_words(out, tool->notes, 0);
}

_Noreturn void options_wrong(const struct tool *tool)
{
    char *text = NULL;
    size_t size, lines = MESSAGE_LINES;
    FILE *out = open_memstream(&text, &size);

    if (out) {
        print_help(out, tool);
        fclose(out);
    }
    for (const char *p = text; p && (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    if (text && lines <= SCREEN_LINES) {
        fputs(text, stderr);
    } else {
        const char *end = strstr(tool->usage, " [");
        size_t name =
            end ? (size_t)(end - tool->usage) : strcspn(tool->usage, " \n");
        fprintf(stderr, "Usage: %s\nThe options: %.*s --help\n", tool->usage,
                (int)name, tool->usage);
    }
    exit(USAGE_STATUS);
}

// ---- parsing

static bool take_number(const char *name, const char *text,
                        const struct tool_option *o)
{
    if (!decimal(text, o->min, o->max, o->number)) {
        complain("%s %s: not a number from %u to %u", name, text, o->min,
                 o->max);
        return false;
    }
    if (o->unit)
        *o->number *= o->unit;
    return true;
}

static bool take(const char *name, char *argument, const struct tool_option *o)
{
    const char *problem = o->take(o->arg, argument);

    if (problem && argument)
        complain("%s '%s': %s", name, argument, problem);
    else if (problem)
        complain("%s: %s", name, problem);
    return !problem;
}

// `name` is the option as the user gave it.
static void apply(const struct tool *tool, const struct tool_option *o,
                  const char *name, char *argument)
{
    if (o == &help) {
        print_help(stdout, tool);
        exit(sysinfo_finish());
    }
    if (o->task && !sysinfo_parse_task(name, argument, o->task))
        options_wrong(tool);
    if (o->number && !o->argument)
        *o->number = o->value;
    else if (o->number && !take_number(name, argument, o))
        options_wrong(tool);
    if (o->take && !take(name, argument, o))
        options_wrong(tool);
    if (o->text)
        *o->text = argument;
    if (o->flag)
        *o->flag = true;
}

// Takes argv[optind] if it is -x=NAME, which getopt cannot parse.
static bool take_joined(const struct tool *tool, char *const argv[])
{
    char *word = argv[optind];

    if (!word || word[0] != '-' || word[1] == '\0' || word[2] != '=')
        return false;
    for (const struct tool_option *o = tool->options; !is_end(o); o++) {
        const char name[] = { '-', o->letter, '\0' };
        if (o->letter != word[1] || !is_optional(o))
            continue;
        optind++;
        apply(tool, o, name, word + 3);
        return true;
    }
    return false;
}

static size_t count_options(const struct tool *tool)
{
    size_t n = 0;

    while (!is_end(&tool->options[n]))
        n++;
    return n;
}

static const struct tool_option *find_letter(const struct tool *tool,
                                             char letter)
{
    for (const struct tool_option *o = tool->options; !is_end(o); o++) {
        if (o->letter == letter)
            return o;
    }
    return &help;
}

// Takes what getopt_long has found: the letter `c`, or 0 and the name.
static void take_found(const struct tool *tool, int c,
                       const struct tool_option *named)
{
    char name[32];

    if (c != 0) {
        snprintf(name, sizeof(name), "-%c", c);
        apply(tool, find_letter(tool, (char)c), name, optarg);
    } else {
        snprintf(name, sizeof(name), "--%s", named->name);
        apply(tool, named, name, optarg);
    }
}

int options_parse(const struct tool *tool, int argc, char *argv[])
{
    struct tool_option own_help = help_of(tool);
    size_t count = count_options(tool);
    struct option names[count + 2]; // + 2: --help and the terminator
    char letters[2 * (count + 1) + 2];
    size_t size = 0, named = 0;
    int c, which;

    if (tool->command)
        letters[size++] = '+'; // getopt_long stops at the first operand
    // `which` is set by getopt_long for long names only.
    for (size_t i = 0; i <= count; i++) {
        const struct tool_option *o = i < count ? &tool->options[i] : &own_help;
        bool argument = o->argument && !is_optional(o);
        if (o->name)
            names[named++] =
                (struct option){ o->name, argument, &which, (int)i };
        if (o->letter != 0)
            letters[size++] = o->letter;
        if (o->letter != 0 && argument)
            letters[size++] = ':';
    }
    names[named] = (struct option){ 0 };
    letters[size] = '\0';

    for (;;) {
        if (take_joined(tool, argv))
            continue;
        c = getopt_long(argc, argv, letters, names, NULL);
        if (c == -1)
            break;
        if (c == '?') // getopt_long has printed a message
            options_wrong(tool);
        take_found(tool, c,
                   c == 0 && which < (int)count ? &tool->options[which]
                                                : &help);
    }
    if (optind < argc && tool->no_operands) {
        complain("%s: %s", argv[optind], tool->no_operands);
        options_wrong(tool);
    }
    return optind;
}
