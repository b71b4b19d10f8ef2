// Options from a table: see options.h.
#include "options.h"

#include "strobe.h"
#include "sysinfo.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const struct tool_option help = {
    .letter = 'h', .name = "help", .meaning = "Print this usage information"
};

// kgmon has a -h of its own: there the help has only its long name.
static struct tool_option help_of(const struct tool *tool)
{
    struct tool_option own = help;

    for (const struct tool_option *o = tool->options; o->name != NULL; o++) {
        if (o->letter == own.letter)
            own.letter = 0;
    }
    return own;
}

// ---- help text

// Prints "-t, --task task_id". Returns its length.
static int print_names(FILE *out, const struct tool_option *o)
{
    int n = o->letter != 0 ? fprintf(out, "  -%c, --%s", o->letter, o->name)
                           : fprintf(out, "      --%s", o->name);

    if (o->argument)
        n += fprintf(out, " %s", o->argument);
    return n;
}

static int names_width(const struct tool_option *o)
{
    int n = (int)strlen("  -x, --") + (int)strlen(o->name);

    return o->argument != NULL ? n + 1 + (int)strlen(o->argument) : n;
}

static void print_option(FILE *out, const struct tool_option *o, int width)
{
    int n = print_names(out, o);

    fprintf(out, "%*s%s\n", width - n, "", o->meaning);
}

static void print_usage(FILE *out, const struct tool *tool)
{
    struct tool_option own_help = help_of(tool);
    int widest = names_width(&own_help);

    for (const struct tool_option *o = tool->options; o->name != NULL; o++)
        widest = names_width(o) > widest ? names_width(o) : widest;
    fprintf(out, "Usage: %s\nOptions:\n", tool->usage);
    for (const struct tool_option *o = tool->options; o->name != NULL; o++)
        print_option(out, o, widest + 3);
    print_option(out, &own_help, widest + 3);
    if (tool->notes)
        fputs(tool->notes, out);
}

_Noreturn void options_wrong(const struct tool *tool)
{
    print_usage(stderr, tool);
    exit(USAGE_STATUS);
}

// ---- parsing

static void apply(const struct tool *tool, const struct tool_option *o)
{
    if (o == &help) {
        print_usage(stdout, tool);
        exit(sysinfo_finish());
    }
    char option[] = { '-', o->letter, '\0' };
    if (o->task && !sysinfo_parse_task(option, optarg, o->task))
        options_wrong(tool);
    if (o->text)
        *o->text = optarg;
    if (o->flag)
        *o->flag = true;
}

static size_t count_options(const struct tool *tool)
{
    size_t n = 0;

    while (tool->options[n].name)
        n++;
    return n;
}

int options_parse(const struct tool *tool, int argc, char *argv[])
{
    struct tool_option own_help = help_of(tool);
    size_t count = count_options(tool);
    struct option names[count + 2]; // + 2: --help and the terminator
    char letters[2 * (count + 1) + 1];
    size_t size = 0;
    int which, c;

    // `which` is set by getopt_long for long names only; letters are looked up
    // below.
    for (size_t i = 0; i <= count; i++) {
        const struct tool_option *o = i < count ? &tool->options[i] : &own_help;
        names[i] =
            (struct option){ o->name, o->argument != NULL, &which, (int)i };
        if (o->letter != 0)
            letters[size++] = o->letter;
        if (o->letter != 0 && o->argument)
            letters[size++] = ':';
    }
    names[count + 1] = (struct option){ 0 };
    letters[size] = '\0';

    while ((c = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        if (c == '?') // getopt_long has printed a message
            options_wrong(tool);
        for (size_t i = 0; c != 0 && i <= count; i++) {
            if (c == (i < count ? tool->options[i].letter : own_help.letter))
                which = (int)i;
        }
        apply(tool, which < (int)count ? &tool->options[which] : &help);
    }
    if (optind < argc && tool->no_operands) {
        complain("%s: %s", argv[optind], tool->no_operands);
        options_wrong(tool);
    }
    return optind;
}

uint32_t number_argument(const char *option, const char *text, uint32_t min,
                         uint32_t max, void (*wrong)(void))
{
    uint32_t value;

    if (decimal(text, min, max, &value))
        return value;
    complain("%s %s: not a number from %u to %u", option, text, min, max);
    wrong();
    exit(USAGE_STATUS);
}
