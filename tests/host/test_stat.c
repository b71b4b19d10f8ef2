// The output of `profile stat` for events that took turns on the counters.
// link: user/libstrobe/options.c user/libstrobe/sysinfo_tool.c
// link: user/libstrobe/core_clock.c user/libprofile/multiplexed.c
// link: user/libstrobe/messages.c user/libstrobe/kbox.c
// link: user/libstrobe/sysinfo.c user/libstrobe/session.c
// link: user/libstrobe/table.c user/libstrobe/number.c
#define _GNU_SOURCE
#include "user/profile/stat.c"

#include "test.h"

#undef fail

void child_start(struct child *c UNUSED, char **command UNUSED)
{
}

void child_go(struct child *c UNUSED)
{
}

int child_end(struct child *c UNUSED)
{
    return 0;
}

static void line_is(struct sprofile_count c, const char *wanted)
{
    struct sprofile_counts counts = { .events = 1,
                                      .tsc_hz = 1000000000,
                                      .count = { c } };
    struct sprofile_count_options o = { .events = 1, .event = { "cycles" } };
    FILE *really = stdout;
    char *text;
    size_t size;

    stdout = open_memstream(&text, &size);
    print_count(&counts, &o, 0);
    fclose(stdout);
    stdout = really;
    assert_string_equal(text, wanted);
    free(text);
}

static void turns(void **state UNUSED)
{
    const uint64_t ms = 1000000;
    struct sprofile_count c = { .kind = SPROFILE_COUNT_EVENTS,
                                .value = 1000,
                                .enabled = 40 * ms,
                                .running = 40 * ms,
                                .part = { { 1000, 40 * ms } } };

    line_is(c, "            1000   cycles\n");
    c.enabled = 280 * ms; // no second turn
    line_is(c, "            7000   cycles (a guess: counted in one turn, 40.0 "
               "of 280.0 ms)\n");
    // Two turns, 600 and 400: 12.71 * 7 * sqrt(2 * (100^2 + 100^2) * 6/7).
    c.part[0] = (struct sprofile_part){ 600, 20 * ms };
    c.part[7] = (struct sprofile_part){ 400, 20 * ms };
    line_is(c, "            7000   cycles (+- 16474: counted in 14.3 % of the "
               "time)\n");
    c.part[0].value = c.part[7].value = 500;
    line_is(c, "            7000   cycles (+- 0: counted in 14.3 % of the "
               "time)\n");
    c.value = c.part[0].value = c.part[7].value = 0;
    line_is(c, "               0   cycles (+- 21: counted in 14.3 % of the "
               "time)\n");
    c.running = 0;
    line_is(c, "     not counted   cycles: it never had a counter\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(turns) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
