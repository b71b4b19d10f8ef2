// The display of top: rows, cells, pages, screens of any size.
// link: user/top/model.c user/top/views.c user/top/rows.c user/top/page.c
// link: user/top/draw.c user/top/draw_cpus.c user/libstrobe/sysinfo_tool.c
// link: user/libstrobe/sysinfo.c user/libstrobe/messages.c
// link: user/libstrobe/table.c
// link: user/libstrobe/number.c
#include "top_world.h"

#include "user/top/draw.h"
#include "user/top/rows.h"

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
    choose_view(&choice, view_by_key('1')); // task filters do not apply to CPUs
    assert_ids(&choice, "0 ");
}

static void views_are_sound(void **state UNUSED)
{
    for (unsigned i = 0; i < view_count; i++) {
        const struct view *v = &views[i];
        assert_true(v->column_count <= VIEW_COLUMNS);
        assert_in_range(view_column_by_name(v, v->sort), 0,
                        v->column_count - 1);
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
    page_put(&p, STYLE_PLAIN, "12345678");
    page_put(&p, STYLE_REVERSE, "90abc");
    page_put(&p, STYLE_BOLD, "lost");
    assert_string_equal(p.lines[0].text, "12345678\033[7m90\033[0m");
    assert_int_equal(page_columns_left(&p), 0);
    page_line(&p);
    page_put(&p, STYLE_BOLD, "a");
    page_put(&p, STYLE_BOLD, "b");
    assert_string_equal(p.lines[1].text, "\033[1mab\033[0m");
    assert_int_equal(page_rows_left(&p), 0);
    page_line(&p);
    page_put(&p, STYLE_PLAIN, "below");
    page_free(&p);
}

// The number of visible characters; each attribute must be reset.
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
    now.d.load = (struct sysinfo_load){ .one = 0x3a148,
                                        .five = 0x19eb8,
                                        .fifteen = 0x9c29 };
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

// With any number of CPUs, each has a bar unless the screen is tiny.
static void a_bar_for_each_cpu(void **state UNUSED)
{
    static const struct {
        unsigned rows, columns;
    } sizes[] = { { 25, 80 }, { 24, 80 }, { 40, 120 }, { 25, 132 } };

    for (u32 cpus = 1; cpus <= CPUS; cpus++) {
        for (u32 size = 0; size < ARRAY_SIZE(sizes); size++) {
            worlds();
            fill_cpus(600, 150, 250, cpus);
            struct comparison c = compared();
            struct page p;
            u32 bars = 0;
            assert_true(page_init(&p, sizes[size].rows, sizes[size].columns));
            p.highlighting = false;
            draw_header(&p, &c);
            for (unsigned i = 0; i < p.used; i++) {
                for (const char *at = p.lines[i].text;
                     (at = strchr(at, '[')) != NULL; at++)
                    bars += strchr(at, ']') != NULL;
            }
            bool together = strstr(p.lines[4].text, "all") != NULL;
            assert_int_equal(bars, cpus + together);
            assert_true(page_rows_left(&p) >= 2 + 5); // status, titles, rows
            page_free(&p);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorting),
        cmocka_unit_test(choosing),
        cmocka_unit_test(views_are_sound),
        cmocka_unit_test(formats),
        cmocka_unit_test(lines_are_cut),
        cmocka_unit_test(a_screen_of_any_size),
        cmocka_unit_test(the_header_of_the_thesis),
        cmocka_unit_test(a_bar_for_each_cpu),
    };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
