// A model CPU with sampling counters, and what its NMI handler counted.
#pragma once

#include "test.h"

#include "pmu_model.h"

static struct pmu_cpu cpu;
static u64 samples[PMU_COUNTERS], weights[PMU_COUNTERS];
static u64 unknown;
static u64 next_period; // what on_sample returns; 0: the same again

static const struct model_type *const types[] = {
    &model_p6,   &model_v1,   &model_v2,    &model_v3,  &model_v4,
    &model_v5,   &model_big,  &model_small, &model_v6,  &model_v6_big,
    &model_k7,   &model_k8,   &model_f15,   &model_zen, &model_zen2,
    &model_zen3, &model_zen4,
};

static struct pmu_sampling users[PMU_COUNTERS];

static inline u64 on_sample(struct pmu_sampling *user,
                            const struct trapframe *tf, u32 weight)
{
    u32 n = (u32)(user - users);

    assert_ptr_equal(tf, &samples);
    assert_true(weight > 0);
    samples[n]++;
    weights[n] += weight;
    return next_period > 0 ? next_period : cpu.slot[n].period;
}

// After detection: all samples go to `due`.
static inline void use_counters(u64 (*due)(struct pmu_sampling *,
                                           const struct trapframe *, u32))
{
    for (u32 n = 0; n < PMU_COUNTERS; n++) {
        users[n].due = due;
        cpu.slot[n].user = &users[n];
    }
}

static inline void on_nmi(void)
{
    if (!pmu_overflow(&cpu, (void *)&samples, model.eip))
        unknown++;
}

static inline void begin(const struct model_type *type)
{
    model_init(type);
    assert_null(pmu_detect(&cpu, &model_io));
    use_counters(on_sample);
    model.handler = on_nmi;
    model.faults = model.lost = 0;
    model.eip = 0x1000;
    memset(samples, 0, sizeof(samples));
    memset(weights, 0, sizeof(weights));
    unknown = next_period = 0;
}

static inline struct pmu_code code_of(const char *text)
{
    struct pmu_event e;
    struct pmu_code code;

    assert_int_equal(pmu_event_parse(text, &e), 0);
    assert_null(pmu_encode(&cpu.pmu, &e, &code));
    return code;
}

static inline u32 sample(const char *text, u64 period)
{
    struct pmu_code code = code_of(text);
    u32 n = pmu_choose(&cpu, code.counters);

    assert_int_not_equal(n, PMU_NONE);
    pmu_sample_start(&cpu, n, &code, period);
    return n;
}
