// Options from a table: what they set, the messages of what is wrong, the help.
//
// link: user/libstrobe/options.c user/libstrobe/number.c
// link: user/libstrobe/messages.c user/libstrobe/table.c
// link: user/libstrobe/sysinfo_tool.c user/libstrobe/sysinfo.c
#include "test.h"

#undef fail // strobe has a function of that name
#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"

#include <getopt.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    bool all;
    u32 rows, bytes, sort, calls;
    const char *file, *how;
} s;

static const char *take_how(void *how, char *argument)
{
    s.calls++;
    *(const char **)how = argument;
    return argument && strcmp(argument, "bad") == 0 ? "not a good one" : NULL;
}

static const struct tool_option options[] = {
    { .meaning = "Things that are listed:" },
    { 'a', "all", NULL, "Everything", .flag = &s.all },
    { 'n', NULL, "ROWS",
      "Length of the table, whose rows are sorted by their values, and cut "
      "here",
      .number = &s.rows, .min = 1, .max = 50 },
    { 0, "memory", "KIB", "Memory", .number = &s.bytes, .min = 8, .max = 64,
      .unit = 1024 },
    { 'c', NULL, NULL, "By calls", .number = &s.sort, .value = 7 },
    { 'g', NULL, "[=HOW]", "A tree", .take = take_how, .arg = &s.how },
    { 'o', "output", "FILE", "Write it", .text = &s.file },
    { 'x', NULL, "X", .text = &s.file },
    { 0 },
};
static const struct tool lister = { .usage = "list things [OPTIONS] [COMMAND]",
                                    .options = options,
                                    .notes = "The status is 0.\n",
                                    .command = true };

static int parse(const char *line)
{
    static char copy[256], *argv[16];
    static bool begun;
    int argc = 0;

    snprintf(copy, sizeof(copy), "list %s", line);
    for (char *p = strtok(copy, " "); p; p = strtok(NULL, " "))
        argv[argc++] = p;
    argv[argc] = NULL;
    memset(&s, 0, sizeof(s));
    if (begun) { // glibc's getopt forgets where it was
        optind = 0;
        getopt(1, argv, "+");
    }
    begun = true; // before, the order is of the first call in options_parse
    return options_parse(&lister, argc, argv);
}

// What the program prints, on either stream, and its exit status.
static const char *said(const char *line, int *status)
{
    static char text[8192];
    size_t size = 0;
    ssize_t n;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    if (fork() == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        parse(line);
        fflush(NULL);
        _exit(99);
    }
    close(ends[1]);
    while ((n = read(ends[0], text + size, sizeof(text) - 1 - size)) > 0)
        size += (size_t)n;
    close(ends[0]);
    text[size] = '\0';
    wait(status);
    *status = WEXITSTATUS(*status);
    return text;
}

static void values(void **state UNUSED)
{
    assert_int_equal(parse("-a -n 50 --memory 64 -c --output=f x -n 1"), 8);
    assert_true(s.all);
    assert_int_equal(s.rows, 50);
    assert_int_equal(s.bytes, 65536);
    assert_int_equal(s.sort, 7);
    assert_string_equal(s.file, "f");
    assert_int_equal(parse("-acn1 -- -n 2"), 3);
    assert_true(s.all && s.sort == 7 && s.rows == 1);
}

static void optional_arguments(void **state UNUSED)
{
    assert_int_equal(parse("-g=deep,5 x"), 2);
    assert_string_equal(s.how, "deep,5");
    assert_int_equal(parse("-g x"), 2);
    assert_true(s.calls == 1 && !s.how);
    assert_int_equal(parse("-gc -g= -g=y"), 4);
    assert_true(s.calls == 3 && s.sort == 7);
    assert_string_equal(s.how, "y");
    // The command's own, and another option's argument.
    assert_int_equal(parse("x -g=y"), 1);
    assert_int_equal(s.calls, 0);
    assert_int_equal(parse("-o -g=y"), 3);
    assert_string_equal(s.file, "-g=y");
}

static void wrong(void **state UNUSED)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        { "-n 0", ": -n 0: not a number from 1 to 50\n" },
        { "-n 51", ": -n 51: not a number from 1 to 50\n" },
        { "-n 5x", ": -n 5x: not a number from 1 to 50\n" },
        { "--memory 65", ": --memory 65: not a number from 8 to 64\n" },
        { "-g=bad", ": -g 'bad': not a good one\n" },
        { "-y", "'y'\n" },
        { "-a=5", "'='\n" },
        { "-n", "'n'\n" },
        { "--nothing", "'--nothing'\n" },
    };
    int status;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *text = said(cases[i].line, &status);
        assert_int_equal(status, USAGE_STATUS);
        assert_non_null(strstr(text, cases[i].message));
        assert_non_null(strstr(text, "\nUsage: list things [OPTIONS]"));
        assert_non_null(strstr(text, "  -a, --all"));
    }
}

static const char help_text[] =
    "Usage: list things [OPTIONS] [COMMAND]\n"
    "Things that are listed:\n"
    "  -a, --all           Everything\n"
    "  -n ROWS             Length of the table, whose rows are sorted by "
    "their\n"
    "                      values, and cut here\n"
    "      --memory KIB    Memory\n"
    "  -c                  By calls\n"
    "  -g[=HOW]            A tree\n"
    "  -o, --output FILE   Write it\n"
    "  -h, --help          Print this usage information\n"
    "The status is 0.\n";

static void the_help(void **state UNUSED)
{
    int status;

    assert_string_equal(said("-a --help", &status), help_text);
    assert_int_equal(status, 0);
}

// A help that does not fit on the screen with the message is not printed.
static void a_long_help(void **state UNUSED)
{
    static struct tool_option many[24];
    const struct tool tool = { .usage = "many things [OPTIONS]",
                               .options = many };
    int status;

    for (u32 lines = 15; lines < 23; lines++) {
        memset(many, 0, sizeof(many));
        for (u32 i = 0; i < lines; i++)
            many[i] = (struct tool_option){ .letter = (char)('A' + i),
                                            .meaning = "One" };
        int ends[2];
        char text[2048];
        assert_int_equal(pipe(ends), 0);
        fflush(NULL);
        if (fork() == 0) {
            dup2(ends[1], STDERR_FILENO);
            options_wrong(&tool);
        }
        close(ends[1]);
        ssize_t n = read(ends[0], text, sizeof(text) - 1);
        close(ends[0]);
        wait(&status);
        text[n > 0 ? n : 0] = '\0';
        // The usage, "Options:" and --help, a message of two lines, a prompt.
        if (lines + 3 + 3 <= 25)
            assert_non_null(strstr(text, "  -A "));
        else
            assert_string_equal(text, "Usage: many things [OPTIONS]\n"
                                      "The options: many things --help\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),      cmocka_unit_test(optional_arguments),
        cmocka_unit_test(wrong),       cmocka_unit_test(the_help),
        cmocka_unit_test(a_long_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
