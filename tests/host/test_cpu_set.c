// lib/cpu_set.h against an array of booleans, for each number of words in use.
#include "test.h"

#include "lib/cpu_set.h"

struct model {
    bool has[CPU_MAX];
};

static u32 cpus; // that exist

static bool in_words(u32 cpu)
{
    return cpu < cpu_set_words * CPU_SET_WORD_BITS;
}

static void compare(const struct cpu_set *s, const struct model *m)
{
    u32 count = 0, from = random_below(cpus), next = CPU_MAX, other = 0;
    for (u32 i = 0; i < CPU_MAX; i++) {
        assert_int_equal(cpu_set_has(s, i), m->has[i]);
        count += m->has[i];
        other += m->has[i] && i != from;
        if (m->has[i] && i >= from && next == CPU_MAX)
            next = i;
    }
    assert_int_equal(cpu_set_is_empty(s), count == 0);
    assert_int_equal(cpu_set_is_empty_acquire(s), count == 0);
    assert_int_equal(cpu_set_next(s, from), next);
    assert_int_equal(cpu_set_has_other(s, from), other != 0);
    u32 visited = 0, last = 0;
    CPU_SET_FOR_EACH(cpu, s)
    {
        assert_true(m->has[cpu] && (!visited || cpu > last));
        last = cpu;
        visited++;
    }
    assert_int_equal(visited, count);
}

// A list as "0-1,3", made from the model.
static void make_list(const struct model *m, char *out)
{
    *out = '\0';
    for (u32 i = 0; i < CPU_MAX; i++) {
        u32 last = i;
        if (!m->has[i])
            continue;
        while (last + 1 < CPU_MAX && m->has[last + 1])
            last++;
        out += sprintf(out, i == last ? "%s%u" : "%s%u-%u", out[-1] ? "," : "",
                       i, last);
        i = last;
    }
}

static void check_list(const struct cpu_set *s, const struct model *m)
{
    char expected[8 * CPU_MAX] = "", list[8 * CPU_MAX];
    make_list(m, expected + 1);
    u32 length = (u32)strlen(expected + 1), size = 2 + random_below(100);
    assert_string_equal(cpu_set_list(s, list, sizeof(list)), expected + 1);
    memset(list, '#', sizeof(list));
    cpu_set_list(s, list, size);
    assert_int_equal(list[size], '#');
    if (strcmp(list, expected + 1) != 0) { // cut after a whole number
        u32 n = (u32)strlen(list) - 1;
        assert_true(n < size && list[n] == '+' && length + 2 > size);
        assert_int_equal(strncmp(list, expected + 1, n), 0);
        assert_true(n == 0 || expected[n + 1] == ',');
    }
}

static struct cpu_set random_set(struct model *m)
{
    struct cpu_set s = CPU_SET_EMPTY;
    u32 dense = random_below(4);
    memset(m, 0, sizeof(*m));
    for (u32 i = 0; i < cpus; i++) {
        if (random_below(dense == 0 ? 40 : dense == 1 ? 2 : 4) == 0) {
            cpu_set_add(&s, i);
            m->has[i] = true;
        }
    }
    return s;
}

static void change(struct cpu_set *s, struct model *m)
{
    u32 cpu = random_below(cpus), from = cpu;
    bool before = m->has[cpu];
    struct cpu_set other;
    struct model of_other;
    bool included = true;
    switch (random_below(9)) {
    case 0:
        cpu_set_add(s, cpu);
        m->has[cpu] = true;
        break;
    case 1:
        cpu_set_remove(s, cpu);
        m->has[cpu] = false;
        break;
    case 2:
        assert_int_equal(cpu_set_add_atomic(s, cpu), before);
        m->has[cpu] = true;
        break;
    case 3:
        assert_int_equal(cpu_set_remove_atomic(s, cpu), before);
        m->has[cpu] = false;
        break;
    case 4:
        other = random_set(&of_other);
        *s = cpu_set_and(s, &other);
        for (u32 i = 0; i < CPU_MAX; i++)
            m->has[i] &= of_other.has[i];
        break;
    case 5:
        other = random_set(m);
        cpu_set_copy(s, &other);
        break;
    case 6:
        *s = cpu_set_below(from);
        for (u32 i = 0; i < CPU_MAX; i++)
            m->has[i] = i < from;
        break;
    case 7:
        other = random_set(&of_other);
        for (u32 i = 0; i < CPU_MAX; i++)
            included &= m->has[i] || !of_other.has[i];
        assert_int_equal(cpu_set_includes(s, &other), included);
        break;
    default:
        *s = cpu_set_of(cpu);
        memset(m, 0, sizeof(*m));
        m->has[cpu] = true;
    }
}

static void random_operations(void **state UNUSED)
{
    for (u32 round = 0; round < 300; round++) {
        struct model m = { { false } };
        struct cpu_set s = CPU_SET_EMPTY;
        cpus = round % 3 ? 1 + random_below(CPU_MAX) : 1 + random_below(64);
        cpu_set_words = DIV_ROUND_UP(cpus, CPU_SET_WORD_BITS);
        for (u32 i = 0; i < 60; i++) {
            change(&s, &m);
            compare(&s, &m);
            if (i % 8 == 0)
                check_list(&s, &m);
        }
    }
}

static void edges(void **state UNUSED)
{
    static const u32 counts[] = { 1, 31, 32, 33, 63, 64, 65, 255, 256 };
    for (u32 i = 0; i < ARRAY_SIZE(counts); i++) {
        char list[CPU_SET_LIST_SIZE], expected[16];
        u32 n = counts[i];
        cpu_set_words = DIV_ROUND_UP(n, CPU_SET_WORD_BITS);
        struct cpu_set all = cpu_set_below(n), last = cpu_set_of(n - 1);
        assert_true(cpu_set_has(&all, 0) && cpu_set_has(&all, n - 1));
        assert_int_equal(cpu_set_next(&last, 0), n - 1);
        assert_false(cpu_set_has_other(&last, n - 1));
        assert_true(cpu_set_includes(&all, &last));
        assert_true(n == 1 || !cpu_set_includes(&last, &all));
        assert_false(n < CPU_MAX && in_words(n) && cpu_set_has(&all, n));
        snprintf(expected, sizeof(expected), n == 1 ? "0" : "0-%u", n - 1);
        assert_string_equal(cpu_set_list(&all, list, sizeof(list)), expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations),
        cmocka_unit_test(edges),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
