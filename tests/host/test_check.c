// The check of samples against the ledger: it finds wrong ones, and finds
// nothing in right ones more often than by chance.
// link: user/libprofile/check.c user/libprofile/binomial.c
// link: user/libprofile/task_times.c
// link: user/libstrobe/table.c
// link: user/libprofile/programs.c
// link: user/libprofile/shares.c
#include "user/libprofile/check.h" // before cmocka, which has a fail(), too

#include "user/libprofile/binomial.h"

#include <math.h>

#include "test.h"

#define DRAWS 2000
#define TICKS 200

static struct sample_count counts[6 * TICKS];
static struct samples samples = { .counts = counts };

// 37 % user, 61 % in the kernel, 2 % in interrupts.
static struct sprofile_info plain(void)
{
    return (struct sprofile_info){
        .source = "nmi-hpet",
        .rate_hz = 1000,
        .cpus = 2,
        .random = 1,
        .user_cycles = 37000000,
        .kernel_cycles = 61000000,
        .irq_cycles = 2000000,
    };
}

// The same on so many CPUs, 1 % of whose time is not sampled.
static struct sprofile_info system_of(u32 cpus)
{
    struct sprofile_info info = plain();

    info.cpus = cpus;
    info.tsc_hz = 1000000000;
    info.elapsed_ns = 101000000 / cpus;
    return info;
}

static void take(u32 cpu, enum sample_mode mode, u64 number, u64 ticks)
{
    counts[samples.count++] = (struct sample_count){
        .samples = number,
        .period = number * ticks,
        .squares = (double)number * ticks * ticks,
        .mode = (u8)mode,
        .cpu = (u16)cpu,
        .thread = cpu + 1,
    };
}

static double chance_of(const struct sprofile_info *info)
{
    struct check c;

    assert_true(check_make(&c, info, &samples, 0));
    return c.p;
}

static void known_chances(void **state UNUSED)
{
    // R: 2 * pbinom(59, 100, 0.5, lower = FALSE) and so on
    assert_float_equal(binomial_chance(100, 60, 0.5), 0.05688793, 1e-8);
    assert_float_equal(binomial_chance(100, 40, 0.5), 0.05688793, 1e-8);
    assert_float_equal(binomial_chance(50, 3, 0.001), 3.82e-5, 1e-6);
    assert_float_equal(binomial_chance(10, 0, 0), 1, 0);
    assert_float_equal(binomial_chance(10, 1, 0), 0, 0);
    assert_float_equal(binomial_chance(10, 9, 1), 0, 0);
    struct interval i = binomial_interval(100, 0.1); // Wilson 1927
    assert_float_equal(i.low, 0.0552, 1e-4);
    assert_float_equal(i.high, 0.1744, 1e-4);
    assert_float_equal(binomial_interval(20, 0).low, 0, 1e-15);
}

static void finds_wrong_samples(void **state UNUSED)
{
    struct sprofile_info info = plain();

    samples.count = 0;
    take(0, MODE_USER, 370, 1);
    take(0, MODE_KERNEL, 610, 1);
    take(0, MODE_IRQ, 20, 1);
    assert_true(chance_of(&info) > 0.9);
    counts[0].samples = counts[0].period = counts[0].squares = 570;
    counts[1].samples = counts[1].period = counts[1].squares = 410;
    assert_true(chance_of(&info) < 1e-9);
    // As many ticks, but only 20 samples: it may be chance.
    counts[0].squares *= 50;
    counts[1].squares *= 50;
    counts[2].squares *= 50;
    assert_true(chance_of(&info) > 0.01);
    // A mode that should have none, however few samples it takes.
    samples.count = 0;
    take(0, MODE_USER, 90, 1);
    take(0, MODE_KERNEL, 10, 1);
    info.kernel_cycles = info.irq_cycles = 500;
    info.user_cycles = 1000000;
    assert_true(chance_of(&info) < 1e-9);
    take(0, MODE_IDLE, 100, 1);
    assert_true(chance_of(&info) < 1e-9);
    counts[1].mode = MODE_USER; // a session of a task has no idle time
    assert_true(chance_of(&info) > 0.5);
}

// Samples with the right modes, of which each of `cpus` has its share.
static struct sprofile_info shares(u32 cpus, const u32 *percent)
{
    samples.count = 0;
    for (u32 i = 0; i < cpus; i++) {
        take(i, MODE_USER, 37 * percent[i], 1);
        take(i, MODE_KERNEL, 61 * percent[i], 1);
        take(i, MODE_IRQ, 2 * percent[i], 1);
    }
    return system_of(cpus);
}

static void finds_a_cpu_that_leans(void **state UNUSED)
{
    struct sprofile_info info = shares(2, (u32[]){ 50, 50 });
    struct check c;

    assert_true(chance_of(&info) > 0.9);
    info = shares(2, (u32[]){ 51, 49 }); // all that is not sampled is on CPU 1
    assert_true(chance_of(&info) > 0.9);
    info = shares(2, (u32[]){ 55, 45 });
    assert_true(chance_of(&info) < 1e-3);
    info = shares(4, (u32[]){ 25, 19, 28, 28 });
    assert_true(chance_of(&info) < 1e-3);
    assert_true(check_make(&c, &info, &samples, 0));
    assert_int_equal(c.cpus, 4);
    assert_int_equal(c.worst, 1);
    assert_float_equal(c.least, 0.2425, 1e-4);
    assert_float_equal(c.most, 0.2525, 1e-4);
    info = shares(3, (u32[]){ 50, 50, 0 }); // without any sample
    assert_true(chance_of(&info) < 1e-9);
    info.clock.tsc_error_ppm = 1000000; // the session's length is not known
    assert_true(chance_of(&info) > 0.9);
    info = shares(2, (u32[]){ 90, 10 });
    info.kernel_cycles += info.irq_cycles;
    info.irq_cycles = 0; // a session of a task
    assert_true(chance_of(&info) > 0.9);
}

static void not_checked(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct check c;

    samples.count = 0;
    take(0, MODE_USER, CHECK_LEAST - 1, 1);
    assert_false(check_make(&c, &info, &samples, 0));
    take(0, MODE_USER, 1, 1);
    assert_true(check_make(&c, &info, &samples, 0));
    assert_false(check_make(&c, &info, &samples, 1)); // another event
    info.lost = 1;
    assert_false(check_make(&c, &info, &samples, 0));
    info.lost = 0;
    strcpy(info.event, "cycles");
    assert_false(check_make(&c, &info, &samples, 0));
    info.event[0] = '\0';
    info.user_cycles = info.kernel_cycles = info.irq_cycles = 0; // older ones
    assert_false(check_make(&c, &info, &samples, 0));
}

static enum sample_mode draw_mode(void)
{
    u32 n = random_below(100);

    return n < 37 ? MODE_USER : n < 98 ? MODE_KERNEL : MODE_IRQ;
}

// One sample in `rare` stands for up to `late` ticks; `same`: all CPUs do the
// same; `apart`: each has its own ticks, as many as come.
static void draw(u32 cpus, bool same, bool apart, u32 rare, u32 late)
{
    samples.count = 0;
    for (u32 i = 0; i < TICKS; i++) {
        enum sample_mode mode = draw_mode();
        u64 ticks = random_below(rare) ? 1 : 1 + random_below(late);
        for (u32 cpu = 0; cpu < cpus; cpu++)
            take(apart ? random_below(cpus) : cpu, same ? mode : draw_mode(), 1,
                 ticks);
    }
}

// Of right samples one in twenty has a p below 0.05, and one in a thousand is
// taken for wrong: at most, to four standard deviations.
static void no_false_alarms(void **state UNUSED)
{
    static const struct {
        u32 cpus;
        bool same, apart;
        u32 rare, late;
    } cases[] = {
        { 1, false, false, 1, 1 },   { 3, false, false, 1, 1 },
        { 3, true, false, 1, 1 },    { 1, false, false, 2, 5 },
        { 1, false, false, 10, 40 }, { 2, true, false, 10, 40 },
        { 2, false, true, 1, 1 },    { 3, false, true, 1, 1 },
        { 3, false, true, 2, 5 },    { 2, false, true, 10, 40 },
    };

    for (u32 n = 0; n < ARRAY_SIZE(cases); n++) {
        u32 twentieth = 0, wrong = 0;
        struct sprofile_info info = system_of(cases[n].cpus);
        if (cases[n].apart)
            strcpy(info.source, "lapic");
        for (u32 i = 0; i < DRAWS; i++) {
            draw(cases[n].cpus, cases[n].same, cases[n].apart, cases[n].rare,
                 cases[n].late);
            double p = chance_of(&info);
            twentieth += p < 0.05;
            wrong += p < CHECK_CHANCE;
        }
        print_message("# case %u: of %u, p < 0.05: %u, < 0.001: %u\n", n, DRAWS,
                      twentieth, wrong);
        assert_true(twentieth <= DRAWS / 20 + 4 * sqrt(DRAWS / 20.0));
        assert_true(wrong <= 2 + 4 * sqrt(2) + 4);
    }
}

// --- by task ----------------------------------------------------------------

// Percents of the time of a session of the system, which has 1 % of interrupts:
// two large tasks, small ones that are pooled, and those that have no times
// (task 0: the kernel's).
#define SMALL 14 // tasks
static const struct {
    u32 task;
    enum sample_mode mode;
    u32 percent;
} shares_of_tasks[] = {
    { 1, MODE_USER, 30 },   { 1, MODE_KERNEL, 12 },  { 2, MODE_USER, 22 },
    { 2, MODE_KERNEL, 10 }, { 3, MODE_USER, SMALL }, // divided among them
    { 0, MODE_KERNEL, 3 },  { 0, MODE_IRQ, 1 },      { 0, MODE_IDLE, 8 },
};
#define SHARES ARRAY_SIZE(shares_of_tasks)

static struct sprofile_info tasks_begin(void)
{
    struct sprofile_info info = plain();

    task_times_free(&samples.times);
    samples.count = 0;
    info.cpus = 1;
    info.user_cycles = 66000000;
    info.kernel_cycles = 25000000;
    info.irq_cycles = 1000000;
    info.idle_cycles = 8000000;
    task_times_set(&samples.times, 0, 1, 30000000, 12000000);
    task_times_set(&samples.times, 0, 2, 22000000, 10000000);
    for (u32 i = 0; i < SMALL; i++)
        task_times_set(&samples.times, 0, 3 + i, 1000000, 0);
    task_times_set(&samples.times, 1, 1, 1, 1); // another event's
    return info;
}

static void take_of(u32 task, enum sample_mode mode, u64 number, u64 ticks)
{
    take(0, mode, number, ticks);
    counts[samples.count - 1].task = task;
}

// Samples of the exact shares, but `lean` percent of all go from one share to
// another.
static void take_tasks(u32 number, u32 from, u32 to, u32 lean)
{
    samples.count = 0;
    for (u32 i = 0; i < SHARES; i++) {
        u32 percent = shares_of_tasks[i].percent;
        percent -= i == from ? lean : 0;
        percent += i == to ? lean : 0;
        u32 tasks = shares_of_tasks[i].task == 3 ? SMALL : 1;
        for (u32 n = 0; n < tasks; n++)
            take_of(shares_of_tasks[i].task + n, shares_of_tasks[i].mode,
                    number * percent / 100 / tasks, 1);
    }
}

static const struct check_cell *worst_of(const struct sprofile_info *info)
{
    static struct check c;

    assert_true(check_make(&c, info, &samples, 0));
    assert_true(c.cell_count > 0 && c.p < CHECK_CHANCE);
    return &c.cells[c.worst_cell];
}

static void finds_a_task_that_leans(void **state UNUSED)
{
    struct sprofile_info info = tasks_begin();
    struct check c;

    take_tasks(2000, 0, 0, 0);
    assert_true(check_make(&c, &info, &samples, 0));
    assert_int_equal(c.cell_count, 4 + SMALL + 2);
    assert_true(c.p > 0.9);
    take_tasks(2000, 0, 2, 6); // the modes are right
    const struct check_cell *worst = worst_of(&info);
    assert_int_equal(worst->task, 2);
    assert_int_equal(worst->part, PART_USER);
    assert_float_equal(worst->sampled, 0.28, 1e-9);
    assert_float_equal(worst->least, 0.22, 1e-9);
    take_tasks(2000, 3, 1, 6);
    assert_int_equal(worst_of(&info)->part, PART_KERNEL);
    // A task that is not known has samples of a known one.
    take_tasks(2000, 0, 0, 0);
    counts[0].task = 99;
    assert_int_equal(worst_of(&info)->task, CHECK_OTHERS);
    // All of one task's samples are said to be another's.
    take_tasks(2000, 0, 0, 0);
    counts[2].task = 1;
    assert_true(worst_of(&info)->p < 1e-9);
    // An interrupt's first instructions are sampled as the task's.
    take_tasks(2000, 6, 1, 1);
    assert_true(chance_of(&info) > 0.9);
    // Few samples.
    take_tasks(100, 0, 0, 0);
    counts[5].task = 98; // a pooled one's sample is another's
    assert_true(check_make(&c, &info, &samples, 0));
    assert_int_equal(c.cell_count, 4 + 2);
    assert_true(c.p > 0.9);
}

static void not_checked_by_task(void **state UNUSED)
{
    struct sprofile_info info = tasks_begin();

    take_tasks(2000, 0, 2, 6);
    assert_true(chance_of(&info) < CHECK_CHANCE);
    info.times_lost = 1;
    assert_true(chance_of(&info) > 0.9);
    info.times_lost = 0;
    task_times_set(&samples.times, 0, 1, 99000000, 0); // of another session
    assert_true(chance_of(&info) > 0.9);
    task_times_free(&samples.times); // an older recording
    assert_true(chance_of(&info) > 0.9);
    info = tasks_begin();
    info.irq_cycles = info.idle_cycles = 0;
    task_times_free(&samples.times); // the only task of its session
    task_times_set(&samples.times, 0, 1, info.user_cycles, info.kernel_cycles);
    samples.count = 0;
    take_of(1, MODE_USER, 660, 1);
    take_of(1, MODE_KERNEL, 250, 1);
    struct check c;
    assert_true(check_make(&c, &info, &samples, 0));
    assert_int_equal(c.cell_count, 0);
}

static void times_are_of_intervals(void **state UNUSED)
{
    static const struct sprofile_times records[] = {
        { .task = 7, .kind = SPROFILE_TIMES_BEGIN, .user = 100, .kernel = 10 },
        { .task = 7, .kind = SPROFILE_TIMES_END, .user = 150, .kernel = 11 },
        { .task = 8, .kind = SPROFILE_TIMES_END, .user = 5, .kernel = 6 },
        { .task = 7, .kind = SPROFILE_TIMES_BEGIN, .user = 950, .kernel = 99 },
        { .task = 7, .kind = SPROFILE_TIMES_END, .user = 953, .kernel = 99 },
        { .task = 7, .kind = SPROFILE_TIMES_END, .user = 955, .kernel = 100 },
        { .task = 8 + TASK_TIME_BUCKETS, .kind = SPROFILE_TIMES_BEGIN },
    };
    struct task_times t = { 0 };

    for (u32 i = 0; i < ARRAY_SIZE(records); i++)
        task_times_take(&t, &records[i]);
    assert_int_equal(t.count, 3);
    assert_true(t.list[0].known && t.list[1].known && !t.list[2].known);
    assert_int_equal(t.list[0].user, 55);
    assert_int_equal(t.list[0].kernel, 2);
    assert_int_equal(t.list[1].user, 5); // was forked in the session
    assert_int_equal(t.list[1].kernel, 6);
    task_times_free(&t);
}

static void draw_tasks(u32 ticks, u32 rare, u32 late)
{
    samples.count = 0;
    for (u32 i = 0; i < ticks; i++) {
        u32 n = random_below(100), at = 0;
        while (n >= shares_of_tasks[at].percent)
            n -= shares_of_tasks[at++].percent;
        u32 task = shares_of_tasks[at].task;
        // Task 2's kernel code has interrupts off: where a tick is late, the
        // rest of its time has no samples.
        bool off = task == 2 && shares_of_tasks[at].mode == MODE_KERNEL;
        if (off && random_below(rare))
            continue;
        task += task == 3 ? random_below(SMALL) : 0;
        u32 weight = random_below(4) ? 1 : 1 + random_below(late);
        take_of(task, shares_of_tasks[at].mode, 1,
                off ? rare * weight : weight);
    }
}

// As no_false_alarms.
static void no_false_alarms_by_task(void **state UNUSED)
{
    static const struct {
        u32 ticks, rare, late;
    } cases[] = {
        { 200, 1, 1 },  { 1000, 1, 1 }, { 200, 1, 5 },
        { 1000, 3, 1 }, { 1000, 5, 1 }, { 1000, 3, 2 },
    };

    for (u32 n = 0; n < ARRAY_SIZE(cases); n++) {
        u32 twentieth = 0, wrong = 0;
        struct sprofile_info info = tasks_begin();
        for (u32 i = 0; i < DRAWS; i++) {
            draw_tasks(cases[n].ticks, cases[n].rare, cases[n].late);
            double p = chance_of(&info);
            twentieth += p < 0.05;
            wrong += p < CHECK_CHANCE;
        }
        print_message("# case %u: of %u, p < 0.05: %u, < 0.001: %u\n", n, DRAWS,
                      twentieth, wrong);
        assert_true(twentieth <= DRAWS / 20 + 4 * sqrt(DRAWS / 20.0));
        assert_true(wrong <= 2 + 4 * sqrt(2) + 4);
    }
    task_times_free(&samples.times);
}

static char *text;

static void print(const struct sprofile_info *info, bool json, double cost)
{
    size_t size;
    free(text);
    FILE *out = open_memstream(&text, &size);
    if (json)
        check_print_json(out, info, &samples);
    else
        check_print(out, info, &samples, 0, cost);
    fclose(out);
}

static void says(const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no '%s' in:\n%s", part, text);
}

static void said_in_words(void **state UNUSED)
{
    struct sprofile_info info = plain();

    samples.count = 0;
    take(0, MODE_USER, 380, 1);
    take(0, MODE_KERNEL, 620, 1);
    print(&info, false, 0);
    assert_string_equal(text, "Check:   user 38.0 % (ledger 37.0), kernel 62.0 "
                              "% (ledger 63.0): no more than chance (p = "
                              "0.53)\n");
    print(&info, true, 0);
    says("  \"check\": {\"user\": [0.380000, 0.370000], \"kernel\": [0.620000, "
         "0.630000], \"idle\": [0.000000, 0.000000], \"p\": 0.53");
    counts[0].samples = counts[0].period = counts[0].squares = 1380;
    print(&info, false, 0);
    says(": not by chance (p < 0.001)\n         The ledger is exact: believe "
         "it, not the samples. Reasons may be:\n         - an emulator,");
    info.random = 0;
    strcpy(info.source, "rtc");
    print(&info, false, 0.06);
    says("- code with interrupts off");
    says("- fixed distances");
    says("- sampling, which takes");
    info = shares(2, (u32[]){ 60, 40 });
    print(&info, false, 0);
    says("not by chance (p < 0.001)\n         CPU 0 has 60.0 % of the samples "
         "(ledger 49.5 to 50.5)\n         The ledger");
    print(&info, true, 0);
    says(
        "\"cpu_bounds\": [0.495000, 0.505000], \"cpus\": [0.600000, 0.400000], "
        "\"p\": ");
    info = tasks_begin();
    take_tasks(2000, 0, 2, 6);
    programs_init(&samples.programs);
    programs_add(&samples.programs,
                 &(struct program){ .task = 2, .name = "cc\33[1m" });
    print(&info, false, 0);
    says(
        "not by chance (p < 0.001)\n         cc?[1m (task 2) has 28.0 % of the "
        "samples in user mode (ledger 22.0)\n         The ledger");
    print(&info, true, 0);
    says("\"tasks\": [\n    {\"task\": 1, \"name\": \"?\", \"user\": 0.240000, "
         "\"ledger\": [0.300000, 0.300000], \"p\": ");
    says("{\"task\": null, \"kernel\": 0.040000, \"ledger\": [0.030000, "
         "0.040000], \"p\": 1}], \"p\": ");
    take_tasks(2000, 0, 0, 0);
    for (u32 i = 0; i < 4; i++) // all are another's
        counts[i].task = 99;
    print(&info, false, 0);
    says("All other tasks have ");
    programs_free(&samples.programs);
    task_times_free(&samples.times);
    info.lost = 1;
    print(&info, false, 0);
    assert_string_equal(text, "");
    print(&info, true, 0);
    assert_string_equal(text, "  \"check\": null,\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_chances),
        cmocka_unit_test(finds_wrong_samples),
        cmocka_unit_test(finds_a_cpu_that_leans),
        cmocka_unit_test(not_checked),
        cmocka_unit_test(no_false_alarms),
        cmocka_unit_test(finds_a_task_that_leans),
        cmocka_unit_test(not_checked_by_task),
        cmocka_unit_test(times_are_of_intervals),
        cmocka_unit_test(no_false_alarms_by_task),
        cmocka_unit_test(said_in_words),
    };

    random_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(text);
    return failed;
}
