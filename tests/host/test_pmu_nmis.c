// Many counters that start and stop, on models: each NMI is attributed
// correctly, and each event has its samples.
//
// link: arch/i386/pmu/detect.c arch/i386/pmu/describe.c
// link: arch/i386/pmu/models.c arch/i386/pmu/events.c
// link: arch/i386/pmu/counter.c arch/i386/pmu/overflow.c
// link: tests/host/pmu_model.c tests/host/pmu_model_registers.c
// link: tests/host/pmu_model_types.c
#include "pmu_sampled.h"

// --- attribution of NMIs ----------------------------------------------------

// The handler of one counter's NMI also serves a second counter that overflows
// then. Where NMIs are not masked, the second NMI is latched: it is not
// unknown.
static void back_to_back(void **state UNUSED)
{
    u32 repeated = 0;

    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        for (u32 behind = 0; behind < 200; behind += 7) {
            begin(types[i]);
            model.eip = 0x2000 + behind;
            u32 a = sample("instructions", 5000);
            u32 b = sample("cycles", 5000 + behind);
            model_run(1000000);
            assert_int_equal(unknown, 0);
            assert_true(samples[a] > 180 && samples[b] > 170);
            repeated += cpu.repeated;
            pmu_stop(&cpu, a);
            pmu_stop(&cpu, b);
        }
    }
    assert_true(repeated > 100);
}

// The status without its highest counter, in the first read of each NMI.
static u64 get_late(u32 msr)
{
    static u64 nmi;
    u64 value = model_io.get(msr);

    if (msr != cpu.pmu.global_status || nmi == model.nmis || !value)
        return value;
    nmi = model.nmis;
    return value & ~(1ull << (63 - __builtin_clzll(value)));
}

// An overflow that shows up in the status only when the gate has been closed
// for a while: LVT PC was masked, so its NMI does not come.
static void late_status(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        begin(types[i]);
        if (!cpu.pmu.global_status)
            continue;
        u32 a = sample("instructions", 5000), b = sample("cycles", 4990);
        cpu.get = get_late;
        model_run(2000000);
        assert_int_equal(unknown, 0);
        assert_true(samples[a] > 360 && samples[b] > 360);
    }
}

// An NMI of another source, at another eip, is not taken for the owed one.
static void owed_at_its_place(void **state UNUSED)
{
    u32 met = 0;

    for (u32 behind = 0; behind < 200; behind++) {
        begin(&model_v1);
        sample("instructions", 5000);
        sample("cycles", 5000 - behind);
        model_run(5100);
        if (cpu.owed != OWED_AT_EIP)
            continue;
        met++;
        model.eip += 4;
        model_nmi();
        assert_int_equal(unknown, 1);
        assert_int_equal(cpu.repeated, 0);
    }
    assert_true(met > 0);
}

// Stopping a counter at any moment does not stop the others, although its NMI,
// too, masks LVT PC.
static void stopped_beside(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        for (u32 steps = 900; steps < 1010; steps++) {
            begin(types[i]);
            u32 other = sample("cycles", 30000);
            u32 n = sample("instructions", 1000);
            model_run(steps);
            pmu_stop(&cpu, n);
            model_run(100000);
            assert_int_equal(samples[other], 3);
            assert_int_equal(unknown, 0);
        }
    }
}

// A counter that wrapped while it only counted can be sampled afterwards.
static void counted_before(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        begin(types[i]);
        struct pmu_code code = code_of("cache-misses");
        u32 n = pmu_choose(&cpu, code.counters);
        pmu_count_start(&cpu, n, &code);
        model.general[n] = (1ull << types[i]->width) - 5;
        model_run(1000);
        pmu_stop(&cpu, n);
        pmu_sample_start(&cpu, n, &code, 100);
        model_run(16 * 1050);
        assert_int_equal(samples[n], 10);
        assert_int_equal(unknown, 0);
    }
}

// NMIs of other sources are not claimed, before, during and after sampling.
static void foreign_nmis(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        begin(types[i]);
        model_nmi();
        assert_int_equal(unknown, 1);
        model.user = true;
        u32 n = sample("instructions:u", 10000);
        for (u32 k = 0; k < 100; k++) {
            model.eip += 4;
            model_run(777);
            model.eip += 4;
            model_nmi();
        }
        assert_int_equal(unknown, 101);
        assert_int_equal(samples[n], 7);
        pmu_stop(&cpu, n);
        model_nmi();
        assert_int_equal(unknown, 102);
        assert_int_equal(model.nmis, 102 + 7);
    }
}

// The overflow of a counter that only counts raises no interrupt, and its
// status bit is not taken for a sample.
static void silent_overflow(void **state UNUSED)
{
    struct pmu_code branches;

    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        begin(types[i]);
        model.user = true;
        branches = code_of("branches:u");
        u32 counted = pmu_choose(&cpu, branches.counters);
        pmu_count_start(&cpu, counted, &branches);
        model.general[counted] = (1ull << types[i]->width) - 50;
        u32 n = sample("instructions:u", 1000);
        model_run(1500);
        assert_int_equal(samples[n], 1);
        assert_int_equal(samples[counted], 0);
        model_nmi();
        assert_int_equal(unknown, 1);
        // 1500 steps / 5 - 50, and a few while the sampler was started.
        assert_in_range(pmu_read(&cpu.pmu, counted), 249, 300);
        pmu_stop(&cpu, n);
        pmu_stop(&cpu, counted);
    }
}

// An NMI that arrives after its counter was stopped (AMD's come late; BKDG and
// FreeBSD's experience) is not unknown, and does not restart the counter.
static void late_nmi(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        for (u32 delay = 1; delay < 300; delay += 13) {
            begin(types[i]);
            model.nmi_delay = delay;
            u32 n = sample("instructions", 500);
            model_run(498); // it overflows while it is being stopped
            pmu_stop(&cpu, n);
            model_run(1000);
            assert_int_equal(unknown, 0);
            assert_int_equal(model.nmis, 1);
            model_run(100000);
            assert_int_equal(model.nmis, 1);
            model_nmi(); // no second NMI is owed
            assert_int_equal(unknown, 1);
            assert_true(model.lvt_masked);
        }
    }
}

// --- as many events as counters ---------------------------------------------

struct sampled {
    u32 n;
    u64 period, from; // from: the first step
    u32 divisor;      // steps per event
};

// Samples one of these events on each counter that can count it, each with
// another period.
static u32 fill(struct sampled *all)
{
    static const struct {
        const char *event;
        u32 divisor;
    } events[] = { { "instructions:u", 1 },
                   { "branches:u", 5 },
                   { "cycles:u", 1 } };
    u32 count = 0;

    for (u32 i = 0, failed = 0; failed < ARRAY_SIZE(events); i++) {
        const u32 e = i % ARRAY_SIZE(events);
        struct pmu_code code = code_of(events[e].event);
        u32 n = pmu_choose(&cpu, code.counters);
        failed = n == PMU_NONE ? failed + 1 : 0;
        if (n == PMU_NONE)
            continue;
        struct sampled s = { n, 4000 + 777 * i, model.time, events[e].divisor };
        pmu_sample_start(&cpu, n, &code, s.period);
        all[count++] = s;
    }
    return count;
}

// While an NMI is served, the gate stops all counters.
static void assert_complete(const struct sampled *s)
{
    u64 wanted = (model.time - s->from) / s->divisor / s->period;
    u64 stopped = model.access_cost > 0 ? wanted / 4 : 0;

    assert_in_range(weights[s->n], wanted - stopped - 1, wanted + 1);
}

// Counters are stopped one by one. Until then each event has all of its
// samples, and no NMI is unknown.
static void fill_and_drain(const struct model_type *type, u32 cost)
{
    struct sampled all[PMU_COUNTERS];

    begin(type);
    model.user = true;
    model.access_cost = cost;
    u32 count = fill(all);
    assert_true(count >= 2);
    assert_int_equal(count, __builtin_popcount(cpu.sampling));
    for (u32 left = count; left > 0; left--) {
        struct sampled *s = &all[random_below(left)];
        model_run(300000 + random_below(10000));
        assert_complete(s);
        pmu_stop(&cpu, s->n);
        *s = all[left - 1];
    }
    assert_int_equal(unknown, 0);
    assert_int_equal(model.faults, 0);
    assert_int_equal(cpu.enabled | cpu.sampling, 0);
}

static void all_counters(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        for (u32 round = 0; round < 10; round++) {
            fill_and_drain(types[i], 0);
            fill_and_drain(types[i], 20);
        }
    }
}

// --- everything at once -----------------------------------------------------

#define ROUNDS 3000
#define PERIOD_MIN 5000u

struct user {
    bool on;
    u32 n;
    u64 period;
};

static void start_one(struct user *u)
{
    static const char *const names[] = { "cycles",       "instructions",
                                         "branches",     "cache-references",
                                         "cache-misses", "branches:u" };
    struct pmu_code code = code_of(names[random_below(ARRAY_SIZE(names))]);

    u->n = pmu_choose(&cpu, code.counters);
    if (u->n == PMU_NONE)
        return;
    u->on = true;
    // Longer than the handler, which is counted if there is no gate.
    u->period = random_below(3) ? PERIOD_MIN + random_below(PERIOD_MIN) : 0;
    samples[u->n] = 0;
    if (u->period)
        pmu_sample_start(&cpu, u->n, &code, u->period);
    else
        pmu_count_start(&cpu, u->n, &code);
}

// Every sampling counter still takes samples.
static void check_alive(struct user *users)
{
    u64 before[PMU_COUNTERS];

    memcpy(before, samples, sizeof(before));
    model.user = true;
    model_run(16 * 2 * PERIOD_MIN + 1000);
    for (u32 i = 0; i < 4; i++) {
        if (users[i].on && users[i].period)
            assert_true(samples[users[i].n] > before[users[i].n]);
    }
}

static void at_random(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        struct user users[4] = { 0 };
        u64 foreign = 0;
        u32 amd = types[i]->kind == MODEL_AMD; // its NMIs come late
        begin(types[i]);
        for (u32 round = 0; round < ROUNDS; round++) {
            struct user *u = &users[random_below(4)];
            model.access_cost = random_below(60);
            model.nmi_delay = amd * random_below(2) * random_below(100);
            model.user = random_below(2);
            model.eip = random_below(1 << 30);
            if (u->on) {
                pmu_stop(&cpu, u->n);
                u->on = false;
            } else {
                start_one(u);
            }
            model_run(random_below(2 * PERIOD_MIN));
            if (round % 16 == 0)
                check_alive(users);
            if (random_below(4) == 0 && !model.nmi_pending) {
                model.eip = random_below(1 << 30);
                model_nmi();
                foreign++;
            }
        }
        for (u32 k = 0; k < 4; k++) {
            if (users[k].on)
                pmu_stop(&cpu, users[k].n);
        }
        model_run(1000);
        assert_int_equal(model.faults, 0);
        assert_int_equal(cpu.enabled | cpu.sampling, 0);
        // An NMI of another source that coincides with one of ours is claimed.
        // No NMI of ours is unknown.
        if (unknown > foreign)
            fail_msg("%s: %llu unknown NMIs, %llu foreign ones", types[i]->name,
                     (unsigned long long)unknown, (unsigned long long)foreign);
        u64 quiet = model.nmis;
        model_run(100000);
        assert_int_equal(model.nmis, quiet);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(back_to_back),      cmocka_unit_test(late_status),
        cmocka_unit_test(owed_at_its_place), cmocka_unit_test(stopped_beside),
        cmocka_unit_test(counted_before),    cmocka_unit_test(foreign_nmis),
        cmocka_unit_test(silent_overflow),   cmocka_unit_test(late_nmi),
        cmocka_unit_test(all_counters),      cmocka_unit_test(at_random),
    };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
