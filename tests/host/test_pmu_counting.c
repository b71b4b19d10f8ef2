// More events than counters, on models: scaled counts are near the true ones,
// and the enabled and running times are exact.
//
// link: arch/i386/pmu/detect.c arch/i386/pmu/describe.c
// link: arch/i386/pmu/models.c arch/i386/pmu/events.c
// link: arch/i386/pmu/counter.c arch/i386/pmu/overflow.c
// link: arch/i386/pmu/multiplex.c
// link: tests/host/pmu_model.c tests/host/pmu_model_registers.c
// link: tests/host/pmu_model_types.c
// link: user/libprofile/multiplexed.c
#include "test.h"

#include "kernel/profile/counted_cpu.h"
#include "lib/xorshift.h"
#include "pmu_model.h"
#include "user/libprofile/multiplexed.h"

static struct pmu_cpu cpu;
static struct pmu_group group;
static u64 samples;

static struct pmu_sampling users[PMU_COUNTERS];

static u64 on_sample(struct pmu_sampling *user,
                     const struct trapframe *tf UNUSED, u32 weight)
{
    samples += weight;
    return cpu.slot[user - users].period;
}

static void on_nmi(void)
{
    assert_true(pmu_overflow(&cpu, NULL, 0));
}

static void begin(const struct model_type *type)
{
    model_init(type);
    assert_null(pmu_detect(&cpu, &model_io));
    for (u32 n = 0; n < PMU_COUNTERS; n++) {
        users[n].due = on_sample;
        cpu.slot[n].user = &users[n];
    }
    model.handler = on_nmi;
    model.faults = 0;
    model.access_cost = 0;
    memset(&group, 0, sizeof(group));
    samples = 0;
}

static void add(const char *text)
{
    struct pmu_event e;

    assert_int_equal(pmu_event_parse(text, &e), 0);
    assert_null(pmu_encode(&cpu.pmu, &e, &group.code[group.events++]));
}

static u64 scaled(u32 i)
{
    const struct pmu_count *c = &group.count[i];

    assert_true(c->running > 0 && c->running <= c->enabled);
    return (u64)((double)c->value * c->enabled / c->running);
}

static void near(u64 value, u64 expected)
{
    if (value < expected * 98 / 100 || value > expected * 102 / 100)
        fail_msg("%llu is not near %llu", (unsigned long long)value,
                 (unsigned long long)expected);
}

static void rotate(u32 turns, u64 steps)
{
    for (u32 i = 0; i < turns; i++) {
        model_run(steps);
        pmu_group_rotate(&cpu, &group, model.time);
    }
}

// Enough counters: no count is estimated.
static void all_fit(void **state UNUSED)
{
    begin(&model_v2);
    add("cycles");
    add("instructions");
    add("branches:u");
    add("cache-misses");
    model.user = true;
    pmu_group_in(&cpu, &group, model.time);
    rotate(50, 10000);
    pmu_group_out(&cpu, &group, model.time);
    for (u32 i = 0; i < 4; i++) {
        assert_int_equal(group.count[i].enabled, 500000);
        assert_int_equal(group.count[i].running, 500000);
    }
    assert_int_equal(group.count[0].value, 500000);
    assert_int_equal(group.count[1].value, 500000);
    assert_in_range(group.count[2].value, 99999, 100001);
    assert_in_range(group.count[3].value, 31249, 31251);
    assert_int_equal(cpu.enabled, 0);
}

// As sched/pmc reads them (kernel/profile/trace_pmc.c): two counters that run
// all the time, and what they counted from one reading to the next.
static void read_at_switches(const struct model_type *type)
{
    u64 last[2] = { 0 };

    begin(type);
    add("cycles");
    add("instructions:u");
    pmu_group_in(&cpu, &group, model.time);
    for (u32 i = 0; i < 3000; i++) {
        u32 steps = random_below(5000);
        model.user = i % 3 != 0;
        model_run(steps);
        pmu_group_update(&cpu, &group, model.time);
        for (u32 e = 0; e < 2; e++)
            assert_true(group.counter[e] != PMU_NONE);
        assert_int_equal(group.count[0].value - last[0], steps);
        assert_int_equal(group.count[1].value - last[1],
                         model.user ? steps : 0);
        last[0] = group.count[0].value;
        last[1] = group.count[1].value;
    }
    pmu_group_out(&cpu, &group, model.time);
    assert_true(!cpu.enabled && !model.faults);
}

static void read_at_all_switches(void **state UNUSED)
{
    static const struct model_type *const types[] = {
        &model_p6, &model_v1, &model_v2,  &model_v4,  &model_v5,
        &model_k7, &model_k8, &model_f15, &model_zen, &model_zen4
    };
    for (u32 i = 0; i < ARRAY_SIZE(types); i++)
        read_at_switches(types[i]);
}

static void in_turn(const struct model_type *type)
{
    static const struct {
        const char *name;
        u32 divisor;
    } events[] = {
        { "cycles", 1 },        { "cache-references", 4 },
        { "cache-misses", 16 }, { "branches", 5 },
        { "branches", 5 },      { "instructions", 1 },
        { "cycles", 1 },        { "cache-references", 4 },
        { "cycles", 1 },        { "instructions", 1 },
    };
    u64 sum = 0;

    begin(type);
    for (u32 i = 0; i < ARRAY_SIZE(events); i++)
        add(events[i].name);
    pmu_group_in(&cpu, &group, model.time);
    rotate(1000, 9973);
    pmu_group_out(&cpu, &group, model.time);
    for (u32 i = 0; i < ARRAY_SIZE(events); i++) {
        assert_int_equal(group.count[i].enabled, 9973000);
        near(scaled(i), 9973000 / events[i].divisor);
        sum += group.count[i].running;
    }
    // Each counter counted one event at a time.
    u32 counters = (u32)__builtin_popcount(cpu.pmu.counters);
    assert_true(sum <= 9973000ull * MIN(counters, group.events));
    assert_int_equal(cpu.enabled, 0);
    assert_int_equal(model.faults, 0);
}

static void all_in_turn(void **state UNUSED)
{
    in_turn(&model_p6);
    in_turn(&model_v2);
    in_turn(&model_v4);
    in_turn(&model_k8);
    in_turn(&model_f15); // 3 of 6 counters count cache events
    in_turn(&model_zen4);
}

// Neither time nor events count while the group is out.
static void in_and_out(void **state UNUSED)
{
    u64 inside = 0;

    begin(&model_k8);
    add("instructions");
    for (u32 i = 0; i < 100; i++) {
        u64 steps = 1 + random_below(5000);
        pmu_group_in(&cpu, &group, model.time);
        model_run(steps);
        pmu_group_out(&cpu, &group, model.time);
        inside += steps;
        model_run(random_below(5000));
    }
    assert_int_equal(group.count[0].value, inside);
    assert_int_equal(group.count[0].enabled, inside);
}

// A counter wraps between two updates.
static void wrap(void **state UNUSED)
{
    begin(&model_p6);
    add("cycles");
    pmu_group_in(&cpu, &group, model.time);
    for (u32 i = 0; i < 5; i++) {
        model_run(0xff00000000);
        pmu_group_update(&cpu, &group, model.time);
    }
    pmu_group_out(&cpu, &group, model.time);
    assert_int_equal(group.count[0].value, 0xff00000000 * 5);
}

// All counters are in use: the event is enabled, but never runs.
static void no_counter_left(void **state UNUSED)
{
    begin(&model_p6);
    add("branches");
    struct pmu_code code = group.code[0];
    pmu_sample_start(&cpu, 0, &code, 1000);
    pmu_sample_start(&cpu, 1, &code, 1000);
    pmu_group_in(&cpu, &group, model.time);
    rotate(10, 1000);
    pmu_group_out(&cpu, &group, model.time);
    assert_int_equal(group.count[0].enabled, 10000);
    assert_int_equal(group.count[0].running, 0);
    assert_int_equal(group.count[0].value, 0);
    assert_int_equal(cpu.enabled, 3); // the sampling counters still run
}

// Sampling and counting share the counters; NMIs strike at any time.
static void beside_sampling(void **state UNUSED)
{
    static const struct model_type *const types[] = { &model_p6, &model_v1,
                                                      &model_v2, &model_v4,
                                                      &model_k8, &model_zen4 };
    for (u32 t = 0; t < ARRAY_SIZE(types); t++) {
        begin(types[t]);
        model.access_cost = 7;
        model.user = true;
        add("instructions:u");
        add("branches:u");
        add("cache-misses:u");
        struct pmu_code code = group.code[0];
        u32 n = pmu_choose(&cpu, code.counters);
        pmu_sample_start(&cpu, n, &code, 1013);
        u64 start = model.time;
        pmu_group_in(&cpu, &group, model.time);
        rotate(2000, 1000 + random_below(1000));
        pmu_group_out(&cpu, &group, model.time);
        pmu_stop(&cpu, n);
        // The upper bound: all steps are in user mode except those in NMIs.
        u64 most = model.time - start;
        u64 counted = scaled(0);
        assert_true(counted <= most && counted > most / 2);
        near(scaled(1), counted / 5);
        near(scaled(2), counted / 16);
        assert_in_range(samples * 1013, counted * 9 / 10, most);
        assert_int_equal(model.faults, 0);
    }
}

// --- short runs
// ---------------------------------------------------------------

#define TURN 10000 // steps: 1 ms

static const char *const user_events[] = {
    "instructions:u", "cycles:u",        "branches:u",     "cache-references:u",
    "cache-misses:u", "branch-misses:u", "instructions:u", "branches:u"
};
static const u32 user_divisors[] = { 1, 1, 5, 4, 16, 50, 1, 5 };

// Runs 68 turns: the kernel loads the program in the first seven, then phases
// in user mode and in the kernel alternate. Returns the steps in user mode.
static u64 short_run(u32 *seed)
{
    u64 left = 68 * TURN, next_turn = TURN, user = 0, phase = 7 * TURN;

    model.user = false;
    pmu_group_in(&cpu, &group, model.time);
    while (left > 0) {
        u64 now = MIN(MIN(left, phase), next_turn);
        model_run(now);
        user += model.user ? now : 0;
        left -= now;
        phase -= now;
        next_turn -= now;
        if (phase == 0) {
            model.user = !model.user;
            phase = 1 + xorshift(seed) % (model.user ? 2 * TURN : TURN / 2);
        }
        if (next_turn > 0)
            continue;
        pmu_group_rotate(&cpu, &group, model.time);
        next_turn = TURN;
    }
    pmu_group_out(&cpu, &group, model.time);
    return user;
}

static struct sprofile_count count_of(u32 event)
{
    const struct pmu_count *c = &group.count[event];
    struct sprofile_count out = { .value = c->value,
                                  .enabled = c->enabled,
                                  .running = c->running };

    for (u32 i = 0; i < PMU_PARTS; i++)
        out.part[i] = (struct sprofile_part){ group.part[event][i].value,
                                              group.part[event][i].running };
    return out;
}

// Eight events of a short run: 95 % of the intervals contain the true count,
// and they are narrow. The runs are the same each time.
static void short_runs(const struct model_type *type)
{
    u32 seed = 1, right = 0, all = 0;
    double widest = 0;

    for (u32 run = 0; run < 300; run++) {
        begin(type);
        for (u32 i = 0; i < ARRAY_SIZE(user_events); i++)
            add(user_events[i]);
        u64 user = short_run(&seed);
        for (u32 i = 0; i < ARRAY_SIZE(user_events); i++, all++) {
            struct sprofile_count c = count_of(i);
            double truth = (double)user / user_divisors[i];
            double margin = multiplexed_margin(&c);
            widest = MAX(widest, margin / truth);
            right += truth - 1 <= multiplexed_estimate(&c) + margin &&
                     truth + 1 >= multiplexed_estimate(&c) - margin;
        }
    }
    assert_true(right * 100 >= all * 95);
    assert_true(widest < 0.25);
}

static void in_short_runs(void **state UNUSED)
{
    short_runs(&model_p6);
    short_runs(&model_v2);
    short_runs(&model_v4);
    short_runs(&model_k8);
    short_runs(&model_f15);
    short_runs(&model_zen4);
}

// --- tasks on CPUs ----------------------------------------------------------
// As kernel/profile/counts.c does on the machine: sessions count tasks
// whose threads move between CPUs.

#define CPUS 3
#define SESSIONS 4

static struct machine_cpu {
    struct model model;
    struct pmu_cpu cpu;
    struct counted_cpu counted;
    u32 task; // the running task
} machine[CPUS];
static struct pmu_group groups[SESSIONS][CPUS];
static u32 here;
static u64 clock_now; // of all CPUs

static void group_in(u32 session)
{
    pmu_group_in(&machine[here].cpu, &groups[session][here], clock_now);
}

static void group_out(u32 session)
{
    pmu_group_out(&machine[here].cpu, &groups[session][here], clock_now);
}

static const struct counted_ops ops = { group_in, group_out };

// Stores the model of the current CPU, and loads that of CPU `n`.
static void go_to(u32 n)
{
    machine[here].model = model;
    here = n;
    model = machine[here].model;
}

// CPU i is of type[i].
static void begin_mixed(const struct model_type *const type[CPUS], u64 turn)
{
    memset(groups, 0, sizeof(groups));
    memset(machine, 0, sizeof(machine));
    clock_now = 0;
    here = 0;
    for (u32 i = 0; i < CPUS; i++) {
        begin(type[i]);
        machine[i].model = model;
        machine[i].cpu = cpu;
        for (u32 s = 0; s < SESSIONS; s++)
            groups[s][i].turn = turn;
    }
}

static void begin_machine(const struct model_type *type, u64 turn)
{
    const struct model_type *const all[CPUS] = { type, type, type };

    begin_mixed(all, turn);
}

static void add_to(u32 session, const char *text)
{
    struct pmu_event e;

    assert_int_equal(pmu_event_parse(text, &e), 0);
    for (u32 i = 0; i < CPUS; i++) {
        struct pmu_group *g = &groups[session][i];
        assert_null(pmu_encode(&machine[i].cpu.pmu, &e, &g->code[g->events++]));
    }
}

// Runs the task of each CPU for `steps`.
static void pass(u64 steps)
{
    for (u32 i = 0; i < CPUS; i++) {
        go_to(i);
        model_run(steps);
    }
    clock_now += steps;
}

static struct pmu_count total(u32 session, u32 event)
{
    struct pmu_count sum = { 0 };

    for (u32 i = 0; i < CPUS; i++) {
        const struct pmu_count *c = &groups[session][i].count[event];
        sum.value += c->value;
        sum.enabled += c->enabled;
        sum.running += c->running;
    }
    return sum;
}

static void nothing_is_left(void)
{
    for (u32 i = 0; i < CPUS; i++) {
        assert_int_equal(machine[i].counted.in, 0);
        assert_int_equal(machine[i].cpu.enabled, 0);
    }
}

// Tasks 1 to 6 move between the CPUs. Session 0 counts tasks 1 and 2, session 1
// task 2, session 2 task 3, and session 3, for a third of the time, task 4. As
// long as each CPU has enough counters, the counts are exact.
static void tasks_that_move(void **state UNUSED)
{
    static const u32 wanted_by[] = { 0, 1, 3, 4, 8, 0, 0 };
    u64 ran[SESSIONS] = { 0 };

    begin_machine(&model_v4, 0);
    for (u32 s = 0; s < SESSIONS; s++)
        add_to(s, s % 2 ? "cycles" : "instructions");
    for (u32 round = 0; round < 3000; round++) {
        bool third = round >= 1000 && round < 2000;
        for (u32 i = 0; i < CPUS; i++) {
            go_to(i);
            // A CPU keeps its task or switches to a random one.
            if (random_below(3))
                machine[i].task = random_below(7);
            u32 wanted = wanted_by[machine[i].task] & (third ? 15 : 7);
            counted_switch(&machine[i].counted, wanted, &ops);
        }
        u64 steps = 1 + random_below(3000);
        pass(steps);
        for (u32 i = 0; i < CPUS; i++) {
            for (u32 s = 0; s < SESSIONS; s++)
                ran[s] += machine[i].counted.in >> s & 1 ? steps : 0;
        }
    }
    // All tasks exit: a switch to a task that no session counts.
    for (u32 i = 0; i < CPUS; i++) {
        go_to(i);
        counted_switch(&machine[i].counted, 0, &ops);
    }
    pass(100000);
    for (u32 s = 0; s < SESSIONS; s++) {
        struct pmu_count c = total(s, 0);
        assert_true(ran[s] > 0);
        assert_int_equal(c.enabled, ran[s]);
        assert_int_equal(c.running, ran[s]);
        assert_int_equal(c.value, ran[s]);
    }
    nothing_is_left();
}

// 16 events of a task that moves between CPUs, for less than a turn at a time:
// each event gets a counter, and its estimate is within 5 %.
static void sixteen_in_short_stretches(void **state UNUSED)
{
    static const struct {
        const char *name;
        u32 divisor;
    } events[] = {
        { "cache-references", 4 },
        { "cache-misses", 16 },
        { "branches", 5 },
        { "branch-misses", 50 },
    };
    static const struct model_type *const types[] = { &model_p6, &model_v2,
                                                      &model_k8, &model_zen4 };
    for (u32 t = 0; t < ARRAY_SIZE(types); t++) {
        u64 ran = 0;
        begin_machine(types[t], 5000);
        for (u32 i = 0; i < PMU_GROUP_EVENTS; i++)
            add_to(0, events[i % 4].name);
        for (u32 round = 0; round < 12000; round++) {
            u64 steps = 1 + random_below(2000);
            go_to(random_below(CPUS));
            counted_switch(&machine[here].counted, 1, &ops);
            model_run(steps);
            clock_now += steps;
            ran += steps;
            counted_switch(&machine[here].counted, 0, &ops);
            model_run(random_below(1000));
        }
        for (u32 i = 0; i < PMU_GROUP_EVENTS; i++) {
            struct pmu_count c = total(0, i);
            assert_int_equal(c.enabled, ran);
            assert_true(c.running > 0 && c.running < ran);
            u64 estimate = (u64)((double)c.value * c.enabled / c.running);
            u64 truth = ran / events[i % 4].divisor;
            assert_in_range(estimate, truth * 95 / 100, truth * 105 / 100);
        }
        nothing_is_left();
        assert_int_equal(model.faults, 0);
    }
}

// A task that moves between the cores of a hybrid processor: each CPU counts
// with its own codes and counters, and the sums are exact.
static void two_kinds_of_cores(void **state UNUSED)
{
    static const struct model_type *const kinds[CPUS] = { &model_big,
                                                          &model_small,
                                                          &model_big };
    static const struct {
        const char *name;
        u32 divisor;
    } events[] = {
        { "cycles", 1 },           { "instructions", 1 },
        { "L1-dcache-loads", 3 },  { "L1-dcache-load-misses", 20 },
        { "LLC-load-misses", 60 }, { "dTLB-load-misses", 70 },
        { "ref-cycles", 1 },
    };
    u64 ran = 0;

    begin_mixed(kinds, 0);
    for (u32 i = 0; i < ARRAY_SIZE(events); i++)
        add_to(0, events[i].name);
    for (u32 round = 0; round < 1000; round++) {
        u64 steps = 1 + random_below(20000);
        go_to(random_below(CPUS));
        counted_switch(&machine[here].counted, 1, &ops);
        model_run(steps);
        clock_now += steps;
        ran += steps;
        counted_switch(&machine[here].counted, 0, &ops);
    }
    for (u32 i = 0; i < ARRAY_SIZE(events); i++) {
        struct pmu_count c = total(0, i);
        assert_int_equal(c.enabled, ran);
        assert_int_equal(c.running, ran);
        // Each stretch may have cut an event at both ends.
        assert_in_range(c.value, ran / events[i].divisor - 1000,
                        ran / events[i].divisor + 1000);
    }
    nothing_is_left();
    for (u32 i = 0; i < CPUS; i++) {
        go_to(i);
        assert_int_equal(model.faults, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_fit),
        cmocka_unit_test(read_at_all_switches),
        cmocka_unit_test(all_in_turn),
        cmocka_unit_test(in_and_out),
        cmocka_unit_test(wrap),
        cmocka_unit_test(no_counter_left),
        cmocka_unit_test(beside_sampling),
        cmocka_unit_test(in_short_runs),
        cmocka_unit_test(tasks_that_move),
        cmocka_unit_test(sixteen_in_short_stretches),
        cmocka_unit_test(two_kinds_of_cores),
    };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
