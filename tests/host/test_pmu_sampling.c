// Overflows and their NMIs, on models: no sample is lost in any order of
// events, whose NMI it is is known, and wrong orders do lose.
//
// link: arch/i386/pmu/detect.c arch/i386/pmu/events.c arch/i386/pmu/counter.c
// link: arch/i386/pmu/overflow.c tests/host/pmu_model.c
#include "test.h"

#include "pmu_model.h"

static struct pmu_cpu cpu;
static u64 samples[PMU_COUNTERS], weights[PMU_COUNTERS];
static u64 unknown;
static u64 next_period; // what the callback answers

static const struct model_type *const types[] = {
    &model_p6, &model_v1, &model_v2,  &model_v4,  &model_v5,
    &model_k7, &model_k8, &model_f15, &model_zen, &model_zen4,
};

static u64 on_sample(void *arg, u32 n, u32 weight)
{
    assert_ptr_equal(arg, &samples);
    assert_true(weight > 0);
    samples[n]++;
    weights[n] += weight;
    return next_period;
}

static void on_nmi(void)
{
    if (!pmu_overflow(&cpu, model.eip, on_sample, &samples))
        unknown++;
}

static void begin(const struct model_type *type)
{
    model_init(type);
    assert_null(pmu_detect(&cpu, &model_io));
    model.handler = on_nmi;
    model.faults = 0;
    model.eip = 0x1000;
    memset(samples, 0, sizeof(samples));
    memset(weights, 0, sizeof(weights));
    unknown = next_period = 0;
}

static struct pmu_code code_of(const char *text)
{
    struct pmu_event e;
    struct pmu_code code;

    assert_int_equal(pmu_event_parse(text, &e), 0);
    assert_null(pmu_encode(&cpu.pmu, &e, &code));
    return code;
}

static u32 sample(const char *text, u64 period)
{
    struct pmu_code code = code_of(text);
    u32 n = pmu_choose(&cpu, code.counters);

    assert_int_not_equal(n, PMU_NONE);
    pmu_sample_start(&cpu, n, &code, period);
    return n;
}

// --- one event --------------------------------------------------------------

// All samples are there, and all is quiet afterwards.
static void periods_add_up(const struct model_type *type, u64 period, u64 steps)
{
    begin(type);
    model.user = true;
    u32 n = sample("instructions:u", period);
    model_run(steps);
    pmu_stop(&cpu, n);
    assert_in_range(weights[n], steps / period - 1, steps / period + 1);
    u64 then = samples[n], nmis = model.nmis;
    model_run(10 * period);
    assert_int_equal(samples[n], then);
    assert_int_equal(model.nmis, nmis);
    assert_int_equal(unknown, 0);
    assert_int_equal(model.faults, 0);
    assert_true(model.lvt_masked);
    assert_int_equal(cpu.armed | cpu.enabled | cpu.sampling, 0);
}

static void samples_of_all(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        periods_add_up(types[i], 1000, 1000000);
        periods_add_up(types[i], 999983, 50000000);
        // Longer than what a load without full-width writes can say, than
        // what a register of 40 bits can hold.
        periods_add_up(types[i], 0x7fffffff, 0x7fffffffull * 5 + 10);
        periods_add_up(types[i], 0x80000001, 0x80000001ull * 5 + 10);
        periods_add_up(types[i], 0x12345678901, 0x12345678901ull * 3 + 10);
    }
}

// A period shorter than the handler: weights stand for what was passed over.
static void short_periods(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        for (u64 period = 1; period < 400; period = period * 3 / 2 + 1) {
            begin(types[i]);
            u64 start = model.time;
            u32 n = sample("cycles", period);
            model_run(300);
            // Where there is a gate the handler is not counted.
            u64 most = (model.time - start) / period + 1;
            pmu_stop(&cpu, n);
            assert_in_range(weights[n], 300 / period, most);
            assert_int_equal(unknown, 0);
            assert_int_equal(model.faults, 0);
        }
    }
}

// The grid is kept: what the counter counted after its overflow is taken off
// the next period.
static void no_drift(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        begin(types[i]);
        model.user = true;
        model.nmi_delay = 37; // user instructions that the NMI comes too late
        u32 n = sample("instructions:u", 1009);
        model_run(1009 * 5000);
        assert_in_range(weights[n], 4999, 5000);
        pmu_stop(&cpu, n);
    }
}

static void period_may_change(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        begin(types[i]);
        model.user = true;
        u32 n = sample("instructions:u", 1000);
        next_period = 3000;
        model_run(1000 + 3000 * 20 + 10);
        assert_int_equal(samples[n], 21);
        next_period = 100;
        model_run(3000 + 100 * 20);
        assert_in_range(samples[n], 21 + 20, 21 + 22);
        pmu_stop(&cpu, n);
    }
}

// --- freezing ---------------------------------------------------------------

static void freezing(const struct model_type *type)
{
    begin(type);
    model.debugctl = 1 << 12; // by the firmware
    model.user = true;
    u32 n = sample("instructions:u", 1000);
    assert_int_equal(model.debugctl, 0);
    model_run(100000);
    assert_in_range(samples[n], 99, 100);
    model.debugctl = 1 << 12; // and once more, behind our back
    model_run(100000);
    assert_in_range(samples[n], 199, 200);
    assert_int_equal(unknown, 0);
    pmu_stop(&cpu, n);
}

static void freeze_bits(void **state UNUSED)
{
    freezing(&model_v2);
    freezing(&model_v4);
    freezing(&model_zen4);
    // It is there: who does not acknowledge it counts no further.
    begin(&model_v4);
    u32 n = sample("instructions", 1000);
    model.debugctl = 1 << 12;
    cpu.pmu.others &= ~(1ull << 59);
    model_run(100000);
    assert_int_equal(samples[n], 1);
}

// --- orders that lose -------------------------------------------------------

static u32 only; // the one counter of these handlers

// Loads and lets run before LVT PC is unmasked.
static void reload_before_unmask(void)
{
    const struct pmu *p = &cpu.pmu;

    if (p->global_status)
        p->io->write(p->global_reset, pmu_global_bits(cpu.armed));
    samples[only]++;
    pmu_load(&cpu, only);
    p->io->unmask_lvt();
}

static void never_acknowledge(void)
{
    cpu.pmu.io->unmask_lvt();
    samples[only]++;
    pmu_load(&cpu, only);
}

static void never_unmask(void)
{
    const struct pmu *p = &cpu.pmu;

    samples[only]++;
    p->io->write(p->global_reset, pmu_global_bits(cpu.armed));
    pmu_load(&cpu, only);
}

static u64 with_handler(const struct model_type *type, u64 period,
                        void (*handler)(void))
{
    begin(type);
    model.handler = handler;
    only = sample("cycles", period);
    model_run(100000);
    return samples[only];
}

static void wrong_orders_lose(void **state UNUSED)
{
    // Without a gate, or with it open, a period of 10 is over before LVT PC is
    // unmasked, 20 steps later: that interrupt is lost, and it was the last.
    assert_int_equal(with_handler(&model_v1, 10, reload_before_unmask), 1);
    assert_int_equal(with_handler(&model_p6, 10, reload_before_unmask), 1);
    assert_int_equal(with_handler(&model_v2, 10, reload_before_unmask), 1);
    assert_true(model.lost > 0);
    assert_int_equal(with_handler(&model_v2, 1000, never_acknowledge), 1);
    assert_int_equal(with_handler(&model_v4, 1000, never_acknowledge), 1);
    assert_int_equal(with_handler(&model_zen4, 1000, never_acknowledge), 1);
    assert_int_equal(with_handler(&model_v2, 1000, never_unmask), 1);
    // The right one goes on.
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        assert_true(with_handler(types[i], 10, on_nmi) > 500);
        assert_true(with_handler(types[i], 1000, on_nmi) > 85);
        assert_int_equal(unknown, 0);
    }
}

// Scans for overflows, and unmasks then.
static void scan_before_unmask(void)
{
    const struct pmu *p = &cpu.pmu;
    u32 overflowed = pmu_take_overflows(&cpu, cpu.armed);

    p->io->unmask_lvt();
    for (u32 n = 0; n < 2; n++) {
        if (overflowed & 1u << n) {
            samples[n]++;
            pmu_load(&cpu, n);
        }
    }
}

// Two counters, one a bit behind the other, on CPUs that have no status bits.
static bool both_survive(const struct model_type *type, u32 behind,
                         void (*handler)(void))
{
    begin(type);
    model.handler = handler;
    model.user = true;
    sample("instructions:u", 1000);
    sample("cycles", 1000 + behind);
    model_run(200000);
    u64 first = samples[0], second = samples[1];
    model_run(100000);
    assert_int_equal(unknown, 0);
    return samples[0] >= first + 70 && samples[1] >= second + 70;
}

static void two_counters(void **state UNUSED)
{
    bool wrong = true;

    for (u32 behind = 0; behind < 300; behind++) {
        wrong = wrong && both_survive(&model_v1, behind, scan_before_unmask);
        assert_true(both_survive(&model_v1, behind, on_nmi));
        assert_true(both_survive(&model_p6, behind, on_nmi));
    }
    assert_false(wrong);
}

// --- whose NMI --------------------------------------------------------------

// Where NMIs are not masked, the second counter's comes while the first is
// served, which serves both: what was latched then is not an unknown NMI.
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

// A foreign one at another place is not taken for the one that is owed.
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

// The other counters go on when one is stopped at any moment: its NMI, too,
// masks LVT PC.
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

// A counter that has gone round unnoticed, while it only counted, is sampled.
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

// Others' NMIs are not claimed, before, during and after sampling.
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

// A counter that only counts overflows: nothing interrupts, and its status bit
// is not taken for a sample.
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
        // 250 in the 1500 steps, and a few while the sampler was started.
        assert_in_range(pmu_read(&cpu.pmu, counted), 249, 300);
        pmu_stop(&cpu, n);
        pmu_stop(&cpu, counted);
    }
}

// An NMI that comes when its counter has been stopped already (AMD's come
// late; BKDG and FreeBSD's experience) is known, and never starts it again.
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
            model_nmi(); // and that is not owed a second time
            assert_int_equal(unknown, 1);
        }
    }
}

// --- as many events as counters ---------------------------------------------

struct sampled {
    u32 n;
    u64 period, from; // from: which step on
    u32 divisor;      // a step in how many is one of its events
};

// Fills all counters that can count one of these, each with a period of its
// own.
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

// While an NMI is served, which takes time, a gate stops all counters.
static void assert_complete(const struct sampled *s)
{
    u64 wanted = (model.time - s->from) / s->divisor / s->period;
    u64 stopped = model.access_cost > 0 ? wanted / 4 : 0;

    assert_in_range(weights[s->n], wanted - stopped - 1, wanted + 1);
}

// Every event has all of its samples beside the others, until the end, while
// one after the other is stopped; and no NMI is unknown.
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
    assert_int_equal(cpu.armed | cpu.enabled | cpu.sampling, 0);
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
    // Long against the handler, which is counted where there is no gate.
    u->period = random_below(3) ? PERIOD_MIN + random_below(PERIOD_MIN) : 0;
    samples[u->n] = 0;
    if (u->period)
        pmu_sample_start(&cpu, u->n, &code, u->period);
    else
        pmu_count_start(&cpu, u->n, &code);
}

// Every sampler gets on, however the others come and go.
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
        u32 amd = types[i]->kind == MODEL_AMD; // whose NMIs come late
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
        // Foreign NMIs that met one of ours are claimed with it; no NMI of ours
        // is unknown.
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
        cmocka_unit_test(samples_of_all),
        cmocka_unit_test(short_periods),
        cmocka_unit_test(no_drift),
        cmocka_unit_test(period_may_change),
        cmocka_unit_test(freeze_bits),
        cmocka_unit_test(wrong_orders_lose),
        cmocka_unit_test(two_counters),
        cmocka_unit_test(back_to_back),
        cmocka_unit_test(owed_at_its_place),
        cmocka_unit_test(stopped_beside),
        cmocka_unit_test(counted_before),
        cmocka_unit_test(foreign_nmis),
        cmocka_unit_test(silent_overflow),
        cmocka_unit_test(late_nmi),
        cmocka_unit_test(all_counters),
        cmocka_unit_test(at_random),
    };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
