// What top computes and draws from two data sets, without a machine.
// link: user/top/model.c user/top/views.c user/top/rows.c user/top/page.c
// link: user/top/draw.c user/libstrobe/sysinfo_tool.c
// link: user/libstrobe/sysinfo.c user/libstrobe/messages.c
#include "test.h"

#include "user/top/draw.h"
#include "user/top/model.h"
#include "user/top/rows.h"
#include "user/top/views.h"

#define TASKS 20
#define CPUS 32
#define HZ 1000000000ull // a cycle is a nanosecond

// Data sets with room for what a test puts into them.
struct world {
    struct dataset d;
    struct sysinfo_cpu cpus[CPUS];
    struct sysinfo_task tasks[TASKS];
    struct sysinfo_thread threads[TASKS];
    struct sysinfo_exception exceptions[2];
    struct sysinfo_syscall syscalls[2];
};

static struct world before, now;

static void world_init(struct world *w, u64 seconds)
{
    memset(w, 0, sizeof(*w));
    w->d.uptime.seconds = seconds;
    w->d.memory.total = 1 << 20;
    w->d.cpus = w->cpus;
    w->d.tasks = w->tasks;
    w->d.threads = w->threads;
    w->d.exceptions = w->exceptions;
    w->d.syscalls = w->syscalls;
}

static void worlds(void)
{
    world_init(&before, 10);
    world_init(&now, 11);
}

static struct sysinfo_cpu *add_cpu(struct world *w, u64 user, u64 kernel,
                                   u64 irq, u64 idle)
{
    struct sysinfo_cpu *c = &w->cpus[w->d.cpu_count];

    *c = (struct sysinfo_cpu){ .id = w->d.cpu_count++,
                               .frequency = HZ,
                               .user = user,
                               .kernel = kernel,
                               .irq = irq,
                               .idle = idle,
                               .busy = user + kernel + irq,
                               .elapsed = user + kernel + irq + idle };
    return c;
}

static struct sysinfo_task *add_task(struct world *w, u32 id, const char *name,
                                     u64 user, u64 kernel)
{
    struct sysinfo_task *t = &w->tasks[w->d.task_count++];

    *t = (struct sysinfo_task){
        .id = id, .state = SYSINFO_WAITING, .user = user, .kernel = kernel
    };
    snprintf(t->name, sizeof(t->name), "%s", name);
    return t;
}

static struct comparison compared(void)
{
    struct comparison c;

    dataset_sort(&before.d);
    dataset_sort(&now.d);
    compare(&before.d, &now.d, &c);
    return c;
}

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

    cpu_use(now.cpus, now.cpus, HZ, &u); // takes no part
    assert_int_equal(u.idle, PERCENT_ALL);
    assert_int_equal(u.busy, 0);
}

// ---- tasks

static void fill_cpus(u64 busy_each, u64 irq_each, u64 idle_each, u32 cpus)
{
    for (u32 i = 0; i < cpus; i++) {
        add_cpu(&before, 5, 5, 5, 5);
        add_cpu(&now, 5 + busy_each / 2, 5 + busy_each - busy_each / 2,
                5 + irq_each, 5 + idle_each);
    }
}

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

// Tasks, ended tasks, interrupts and idle time are all of all CPUs; whatever
// lies between reading the CPUs and reading the tasks.
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
    now.d.totals.tasks_created = 7; // 3 to 7, of which only 7 is left
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
    add_task(&now, 1, "a", 10 + 780, 0); // read a moment too early
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

// ---- rows

static void three_tasks(void)
{
    worlds();
    fill_cpus(1000, 0, 0, 1);
    add_task(&before, 3, "sh", 0, 0);
    add_task(&now, 30, "Zebra", 0, 0)->resident = 3000;
    add_task(&now, 3, "sh", 0, 300)->resident = 2000;
    add_task(&now, 20, "ash", 700, 0)->resident = 3000;
    now.tasks[2].group = 1;
}

static void assert_ids(const struct choice *choice, const char *want)
{
    struct comparison c = compared();
    struct rows rows = { 0 };
    char got[100] = "";

    assert_true(rows_make(&c, choice, &rows));
    for (size_t i = 0; i < rows.count; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%u ",
                 rows.rows[i].id);
    assert_string_equal(got, want);
    rows_free(&rows);
}

static void sorting(void **state UNUSED)
{
    struct choice choice = { .task = SYSINFO_ALL };

    three_tasks();
    choose_view(&choice, view_by_key('t'));
    assert_ids(&choice, "20 3 30 "); // most of the CPU first
    choice.reverse = true;
    assert_ids(&choice, "30 3 20 ");
    choice.sort = view_column_by_letter(choice.view, 'N');
    assert_ids(&choice, "30 20 3 ");
    choice.reverse = false;
    assert_ids(&choice, "3 20 30 ");
    choice.sort = view_column_by_letter(choice.view, 'M');
    assert_ids(&choice, "20 30 3 "); // equal ones by id
    choice.reverse = true;
    assert_ids(&choice, "3 20 30 ");
    choice.reverse = false;
    choice.sort = view_column_by_letter(choice.view, 'T');
    assert_ids(&choice, "20 3 30 ");
    choice.sort = view_column_by_name(choice.view, "NAME");
    assert_ids(&choice, "20 3 30 "); // ash, sh, Zebra
}

static void choosing(void **state UNUSED)
{
    struct choice choice = { .task = SYSINFO_ALL, .filter = "SH" };

    three_tasks();
    choose_view(&choice, view_by_key('t'));
    assert_ids(&choice, "20 3 ");
    strcpy(choice.filter, "30");
    assert_ids(&choice, "30 ");
    strcpy(choice.filter, "nobody");
    assert_ids(&choice, "");
    choice.filter[0] = '\0';
    choice.active_only = true;
    assert_ids(&choice, "20 3 ");
    choice.task = 3;
    assert_ids(&choice, "3 ");
    choose_view(&choice, view_by_key('1')); // CPUs belong to nobody
    assert_ids(&choice, "0 ");
}

static void views_are_sound(void **state UNUSED)
{
    for (unsigned i = 0; i < view_count; i++) {
        const struct view *v = &views[i];
        assert_true(v->column_count <= VIEW_COLUMNS);
        assert_true(v->sort < v->column_count);
        assert_ptr_equal(view_by_key(v->key), v);
        assert_ptr_equal(view_by_name(v->name), v);
        assert_int_equal(view_column_by_letter(v, 'N'), 0);
        for (unsigned j = 0; j < v->column_count; j++) {
            assert_int_equal(view_column_by_name(v, v->columns[j].name), j);
            assert_int_equal(view_column_by_name(v, v->columns[j].title), j);
            assert_true(strlen(v->columns[j].title) <= v->columns[j].width ||
                        j + 1 == v->column_count);
        }
    }
    assert_null(view_by_key('x'));
    assert_null(view_by_name("x"));
}

static void assert_cell(enum column_kind kind, s64 number, const char *want)
{
    const struct column column = { .kind = kind };
    union cell cell = { .number = number };
    char buf[CELL_MAX];

    assert_string_equal(cell_format(&column, cell, HZ, buf), want);
}

static void formats(void **state UNUSED)
{
    const struct column text = { .kind = COLUMN_TEXT };
    char buf[CELL_MAX];

    assert_cell(COLUMN_ID, 7, "7");
    assert_cell(COLUMN_ID, SYSINFO_ALL, "-");
    assert_cell(COLUMN_NUMBER, -20, "-20");
    assert_cell(COLUMN_PERCENT, 5, "0.05");
    assert_cell(COLUMN_PERCENT, 10000, "100.00");
    assert_cell(COLUMN_SIZE, 999999, "999999");
    assert_cell(COLUMN_SIZE, 1024000, "1000k");
    assert_cell(COLUMN_SIZE, 1024ll * 1024 * 1024, "1024M");
    assert_cell(COLUMN_TIME, 12345678901ll, "12.345");
    assert_cell(COLUMN_MS, 12345678901ll, "12345");
    assert_cell(COLUMN_STATE, SYSINFO_READY, "r");
    assert_cell(COLUMN_STATE, 99, "?");
    assert_cell(COLUMN_FLAG, 1, "yes");
    assert_string_equal(
        cell_format(&text, (union cell){ .text = "a\033[2J\x80" }, HZ, buf),
        "a?[2J?");
}

// ---- pages

static void lines_are_cut(void **state UNUSED)
{
    struct page p;

    assert_true(page_init(&p, 2, 10));
    page_line(&p);
    page_put(&p, LOOK_PLAIN, "12345678");
    page_put(&p, LOOK_REVERSE, "90abc");
    page_put(&p, LOOK_BOLD, "lost");
    assert_string_equal(p.lines[0].text, "12345678\033[7m90\033[0m");
    assert_int_equal(page_left(&p), 0);
    page_line(&p);
    page_put(&p, LOOK_BOLD, "a");
    page_put(&p, LOOK_BOLD, "b");
    assert_string_equal(p.lines[1].text, "\033[1mab\033[0m");
    assert_int_equal(page_rows_left(&p), 0);
    page_line(&p);
    page_put(&p, LOOK_PLAIN, "below");
    page_free(&p);
}

// Visible characters of a line; every look is taken off again.
static unsigned visible(const struct line *l)
{
    unsigned n = 0;
    bool on = false;

    for (size_t i = 0; i < l->size; i++) {
        if (l->text[i] != '\033') {
            n++;
            continue;
        }
        assert_int_equal(l->text[i + 1], '[');
        on = l->text[i + 2] != '0';
        i += 3;
        assert_int_equal(l->text[i], 'm');
    }
    assert_false(on);
    return n;
}

static void a_screen_of_any_size(void **state UNUSED)
{
    struct choice choice = { .task = SYSINFO_ALL };
    struct rows rows = { 0 };

    three_tasks();
    for (unsigned columns = 1; columns < 200; columns += 7) {
        for (unsigned height = 1; height < 50; height += 3) {
            struct comparison c = compared();
            struct page p;
            choose_view(&choice, &views[columns % view_count]);
            assert_true(rows_make(&c, &choice, &rows));
            assert_true(page_init(&p, height, columns));
            draw_header(&p, &c);
            draw_status(&p, &choice, 1.0);
            draw_rows(&p, &c, &choice, &rows, 0);
            for (unsigned i = 0; i < MIN(p.used, p.rows); i++) {
                assert_int_equal(visible(&p.lines[i]), p.lines[i].width);
                assert_true(p.lines[i].width <= columns);
            }
            page_free(&p);
        }
    }
    rows_free(&rows);
}

static void the_header_of_the_thesis(void **state UNUSED)
{
    struct page p;

    worlds();
    now.d.uptime.seconds = 86400 + 2 * 60 + 27;
    now.d.load =
        (struct sysinfo_load){ 0x3a148, 0x19eb8, 0x9c29 }; // 3.63 1.62 0.61
    fill_cpus(2000000000, 0, 6000000000, 2);
    struct comparison c = compared();
    page_init_growing(&p, 80);
    draw_header(&p, &c);
    assert_non_null(strstr(p.lines[0].text,
                           " up 1 days, 00:02:27, load average: 3.63 1.62 0."
                           "61"));
    assert_string_equal(p.lines[4].text,
                        "cpu0    25.00  75.00  12.50  12.50   0.00     2000"
                        "     6000 [||###.............]");
    page_free(&p);
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
        cmocka_unit_test(sorting),
        cmocka_unit_test(choosing),
        cmocka_unit_test(views_are_sound),
        cmocka_unit_test(formats),
        cmocka_unit_test(lines_are_cut),
        cmocka_unit_test(a_screen_of_any_size),
        cmocka_unit_test(the_header_of_the_thesis),
    };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
