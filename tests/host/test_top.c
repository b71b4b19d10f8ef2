// What top computes from two data sets, without a machine.
// link: user/top/model.c user/top/views.c user/top/rows.c user/top/page.c
// link: user/top/draw.c user/top/draw_cpus.c user/libstrobe/sysinfo_tool.c
// link: user/libstrobe/sysinfo.c user/libstrobe/messages.c
// link: user/libstrobe/table.c
// link: user/libstrobe/number.c
#include "top_world.h"

#include "user/top/rows.h"

// ---- numbers

static void shares_add_up(void **state UNUSED)
{
    for (int round = 0; round < 2000; round++) {
        u64 parts[50], whole = 0;
        u32 n = 1 + random_below(50), units = random_below(400000);
        for (u32 i = 0; i < n; i++) {
            parts[i] =
                random_below(4) ? random_u64() >> (20 + random_below(40)) : 0;
            whole += parts[i];
        }
        struct sharing s = { .whole = whole, .units = units };
        u64 sum = 0;
        for (u32 i = 0; i < n; i++) {
            u32 got = share(&s, parts[i]);
            double exact = whole ? (double)parts[i] / whole * units : 0;
            assert_true(got > exact - 1.001 && got < exact + 1.001);
            assert_true(parts[i] != 0 || got == 0);
            sum += got;
        }
        assert_int_equal(sum, whole ? units : 0);
    }
}

static void counters_never_shrink(void **state UNUSED)
{
    assert_int_equal(grown(3, 10), 7);
    assert_int_equal(grown(10, 3), 0);
    assert_int_equal(per_second(10, 500000000), 20);
    assert_int_equal(per_second(1, 3000000000ull), 0);
    assert_int_equal(per_second(2, 3000000000ull), 1);
}

static void each_cpu_adds_up(void **state UNUSED)
{
    for (int round = 0; round < 2000; round++) {
        worlds();
        add_cpu(&before, random_below(1000), 7, 7, 7);
        u32 shift = random_below(31);
        add_cpu(&now, 1000 + (random_below(~0u) >> shift),
                7 + (random_below(~0u) >> shift),
                7 + (random_below(~0u) >> random_below(31)),
                7 + (random_below(~0u) >> shift));
        struct cpu_use u;
        cpu_use(before.cpus, now.cpus, HZ, &u);
        assert_int_equal(u.user + u.kernel + u.irq + u.idle, PERCENT_ALL);
        assert_int_equal(u.busy + u.idle, PERCENT_ALL);
    }
}

static void cpu_percentages(void **state UNUSED)
{
    struct cpu_use u;

    worlds();
    add_cpu(&before, 100, 100, 100, 100);
    add_cpu(&now, 100 + 5000, 100 + 2500, 100 + 1250, 100 + 1250)->switches = 9;
    cpu_use(before.cpus, now.cpus, HZ, &u);
    assert_int_equal(u.user, 5000);
    assert_int_equal(u.kernel, 2500);
    assert_int_equal(u.irq, 1250);
    assert_int_equal(u.idle, 1250);
    assert_int_equal(u.busy, 8750);
    assert_int_equal(u.user_total, 5100);
    assert_int_equal(u.switches_per_second, 9);

    cpu_use(now.cpus, now.cpus, HZ, &u); // no time has passed
    assert_int_equal(u.idle, PERCENT_ALL);
    assert_int_equal(u.busy, 0);
}

// ---- tasks

// The percentages of all rows, by column name.
static u64 sum_of(struct comparison *c, const char *column)
{
    struct choice choice = { .task = SYSINFO_ALL };
    struct rows rows = { 0 };
    u64 sum = 0;

    choose_view(&choice, view_by_key('t'));
    assert_true(rows_make(c, &choice, &rows));
    int index = view_column_by_name(choice.view, column);
    for (size_t i = 0; i < rows.count; i++)
        sum += rows.rows[i].cells[index].number;
    rows_free(&rows);
    return sum;
}

// Tasks, ended tasks, interrupts and idle time add up to all CPUs, also if time
// passes between reading the CPUs and reading the tasks.
static void all_tasks_and_cpus_add_up(void **state UNUSED)
{
    for (int round = 0; round < 500; round++) {
        u32 cpus = 1 + random_below(CPUS), busy = 0, skew = random_below(1000);
        worlds();
        for (u32 id = 1; id <= TASKS; id++) {
            u64 used = random_below(3) ? random_below(10000000) : 0;
            if (random_below(5) > 0)
                add_task(&before, id, "x", 1000, 0);
            else
                busy += skew;
            if (random_below(5) > 0)
                add_task(&now, id, "x", 1000 + used / 3, used - used / 3);
            busy += used;
        }
        fill_cpus(busy / cpus + 1, random_below(1000), random_below(90000000),
                  cpus);
        struct comparison c = compared();
        u64 others = c.summary.ended_percent;
        for (u32 i = 0; i < cpus; i++) {
            struct cpu_use u;
            cpu_use(&before.cpus[i], &now.cpus[i], c.summary.elapsed_ns, &u);
            others += u.idle + u.irq;
        }
        if (c.summary.counted > 0)
            assert_int_equal(sum_of(&c, "cpu") + others, PERCENT_ALL * cpus);
        assert_int_equal(sum_of(&c, "user") + sum_of(&c, "kernel"),
                         sum_of(&c, "cpu"));
        assert_int_equal(sum_of(&c, "cpu"), sum_of(&c, "cpu")); // repeatable
    }
}

static void short_lived_tasks_are_counted(void **state UNUSED)
{
    worlds();
    fill_cpus(800, 0, 200, 1);
    add_task(&before, 1, "stays", 10, 0);
    add_task(&before, 2, "ends", 10, 0);
    add_task(&now, 1, "stays", 10 + 300, 100);
    add_task(&now, 7, "new", 50, 50);
    before.d.totals.tasks_created = 2;
    now.d.totals.tasks_created = 7; // 3 to 7, of which only 7 exists
    struct comparison c = compared();
    assert_int_equal(c.summary.created, 5);
    assert_int_equal(c.summary.short_lived, 4);
    assert_int_equal(c.summary.ended, 5);
    assert_int_equal(c.summary.ended_cycles, 300);
    assert_int_equal(c.summary.ended_percent, 3000);
    assert_int_equal(sum_of(&c, "cpu"), 5000);
}

static void nothing_ended_nothing_is_missing(void **state UNUSED)
{
    worlds();
    fill_cpus(800, 0, 200, 1);
    add_task(&before, 1, "a", 10, 0);
    add_task(&now, 1, "a", 10 + 780, 0); // read slightly too early
    struct comparison c = compared();
    assert_int_equal(c.summary.ended, 0);
    assert_int_equal(c.summary.ended_percent, 0);
    assert_int_equal(sum_of(&c, "cpu"), 8000);
}

static void an_id_given_again_is_another_task(void **state UNUSED)
{
    worlds();
    fill_cpus(1000, 0, 0, 1);
    add_task(&before, 5, "old", 1000000, 0)->started = 1;
    add_task(&now, 5, "new", 600, 0)->started = 2;
    before.d.totals.tasks_created = 5;
    now.d.totals.tasks_created = 6;
    struct comparison c = compared();
    assert_null(dataset_task(&before.d, &now.tasks[0]));
    assert_int_equal(c.summary.created, 1);
    assert_int_equal(c.summary.short_lived, 0);
    assert_int_equal(c.summary.ended, 1);
    assert_int_equal(sum_of(&c, "cpu"), 6000);
    assert_int_equal(c.summary.ended_percent, 4000);
}

static void threads_by_state(void **state UNUSED)
{
    static const u32 states[] = { SYSINFO_RUNNING, SYSINFO_READY,
                                  SYSINFO_READY,   SYSINFO_SLEEPING,
                                  SYSINFO_WAITING, SYSINFO_WAITING,
                                  SYSINFO_STOPPED, SYSINFO_DEAD,
                                  SYSINFO_ZOMBIE,  99 };
    worlds();
    fill_cpus(1, 1, 1, 1);
    for (u32 i = 0; i < ARRAY_SIZE(states); i++)
        now.threads[now.d.thread_count++] =
            (struct sysinfo_thread){ .id = i, .state = states[i] };
    struct comparison c = compared();
    assert_int_equal(c.summary.threads, 10);
    assert_int_equal(c.summary.running, 1);
    assert_int_equal(c.summary.ready, 2);
    assert_int_equal(c.summary.sleeping, 3);
    assert_int_equal(c.summary.lingering, 2);
    assert_int_equal(c.summary.other, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_add_up),
        cmocka_unit_test(counters_never_shrink),
        cmocka_unit_test(each_cpu_adds_up),
        cmocka_unit_test(cpu_percentages),
        cmocka_unit_test(all_tasks_and_cpus_add_up),
        cmocka_unit_test(short_lived_tasks_are_counted),
        cmocka_unit_test(nothing_ended_nothing_is_missing),
        cmocka_unit_test(an_id_given_again_is_another_task),
        cmocka_unit_test(threads_by_state),
    };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
