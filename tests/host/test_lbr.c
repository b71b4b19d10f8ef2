// Branch records in call-stack mode (arch/i386/pmu/lbr.c) on models of CPUs,
// written from the manuals: a call pushes a record, a return takes the last one
// out of the registers, as far as their mode and kind are not filtered out.
// Reserved bits fault. Calls of the next instruction are no callers.
#include "test.h"

#include "arch/i386/pmu/lbr.c"

#define CALLS_MAX 80u
#define MISPREDICTED (1ull << 63) // in FROM, where the format has it
#define CYCLES (42ull << 48)      // in TO, likewise

struct type {
    const char *name;
    u32 vendor, signature, features, leaf_7_edx, lbr_eax, lbr_ebx;
    u32 leaves, depth; // registers
    u64 format;
    bool no_format, fault, ignore, info, in_use;
};

static struct {
    struct type type;
    u64 from[32], to[32], info[32], tos, select, debugctl, control;
    u32 faults; // writes since the start that raised #GP
} cpu;

static bool architectural(void)
{
    return cpu.type.leaf_7_edx != 0;
}

static void model_cpuid(u32 leaf, u32 subleaf UNUSED, u32 r[4])
{
    memset(r, 0, 4 * sizeof(r[0]));
    if (leaf > cpu.type.leaves)
        fail_msg("leaf %x does not exist", leaf);
    if (leaf == 0) {
        r[EAX] = cpu.type.leaves;
        r[EBX] = cpu.type.vendor;
    } else if (leaf == 1) {
        r[EAX] = cpu.type.signature;
    } else if (leaf == 7) {
        r[EDX] = cpu.type.leaf_7_edx;
    } else if (leaf == 0x1c) {
        r[EAX] = cpu.type.lbr_eax;
        r[EBX] = cpu.type.lbr_ebx;
    }
}

static u64 *record_of(u32 msr)
{
    u32 n = cpu.type.depth, from = 0x680, to = 0x6c0, info = 0xdc0;
    if (architectural()) {
        from = 0x1500;
        to = 0x1600;
        info = 0x1200;
    }
    if (msr - from < n)
        return &cpu.from[msr - from];
    if (msr - to < n)
        return &cpu.to[msr - to];
    return cpu.type.info && msr - info < n ? &cpu.info[msr - info] : NULL;
}

// The register, or NULL: a #GP. *reserved: bits whose change is one.
static u64 *find(u32 msr, u64 *reserved)
{
    u64 *record = record_of(msr);
    *reserved = 0;
    if (record) {
        *reserved = 0x1fff800000000000; // neither canonical nor flags
        return record;
    }
    if (msr == 0x1d9) {
        *reserved = ~0x1fc3ull & ~0xc000ull;
        return &cpu.debugctl;
    }
    if (architectural() && msr == 0x14ce) {
        *reserved = ~0x7f000full;
        return &cpu.control;
    }
    if (!architectural() && msr == 0x1c8) {
        *reserved = ~0x3ffull;
        return &cpu.select;
    }
    if (!architectural() && msr == 0x1c9) {
        *reserved = ~(u64)(cpu.type.depth - 1);
        return &cpu.tos;
    }
    return NULL;
}

static bool model_read(u32 msr, u64 *value)
{
    u64 reserved, *r = find(msr, &reserved);
    if (msr == 0x345) {
        *value = cpu.type.no_format ? *value : cpu.type.format;
        return !cpu.type.no_format;
    }
    if (!r || (cpu.type.fault && msr != 0x1d9))
        return false;
    *value = *r;
    return true;
}

static bool model_write(u32 msr, u64 value)
{
    u64 reserved, *r = find(msr, &reserved);
    if (cpu.type.fault && msr != 0x1d9)
        return false;
    if (architectural() && msr == 0x14cf) {
        memset(cpu.from, 0, sizeof(cpu.from));
        memset(cpu.to, 0, sizeof(cpu.to));
        memset(cpu.info, 0, sizeof(cpu.info));
        return value && value <= cpu.type.depth && value % 8 == 0;
    }
    if (!r || value & reserved) {
        cpu.faults++;
        return false;
    }
    if (!cpu.type.ignore)
        *r = value;
    return true;
}

static const struct pmu_io model_io = { .read = model_read,
                                        .write = model_write,
                                        .cpuid = model_cpuid };

// Frozen at PMIs, what call-stack mode records would be wrong.
static bool records_calls(bool user)
{
    if (cpu.debugctl & 1 << 11)
        return false;
    if (architectural())
        return cpu.control & 1 && cpu.control & (user ? 4 : 2) &&
               (cpu.control & 0x380008) == 0x380008;
    // Calls and returns are not left out; the rest is, as the mode demands.
    return cpu.debugctl & 1 && !(cpu.select & (user ? 2 : 1)) &&
           (cpu.select & 0x3fc) == 0x3c4;
}

static void call(u32 from, u32 to, bool user)
{
    if (!records_calls(user))
        return;
    u32 at = 0;
    if (architectural()) {
        memmove(cpu.from + 1, cpu.from, 31 * sizeof(cpu.from[0]));
        memmove(cpu.to + 1, cpu.to, 31 * sizeof(cpu.to[0]));
    } else {
        at = cpu.tos = (cpu.tos + 1) & (cpu.type.depth - 1);
    }
    u64 format = cpu.type.format;
    bool flags = (format == 3 || format == 4 || format == 6) && random_below(2);
    cpu.from[at] = from | (flags ? MISPREDICTED : 0);
    cpu.to[at] = to | (format == 6 ? CYCLES : 0);
    cpu.info[at] = 1;
}

static void ret(bool user)
{
    if (!records_calls(user))
        return;
    if (architectural()) {
        memmove(cpu.from, cpu.from + 1, 31 * sizeof(cpu.from[0]));
        memmove(cpu.to, cpu.to + 1, 31 * sizeof(cpu.to[0]));
        cpu.from[cpu.type.depth - 1] = cpu.to[cpu.type.depth - 1] = 0;
    } else {
        cpu.from[cpu.tos] = cpu.to[cpu.tos] = 0;
        cpu.tos = (cpu.tos - 1) & (cpu.type.depth - 1);
    }
}

#define INTEL 0x756e6547u
static const struct type haswell = { .name = "Haswell",
                                     .vendor = INTEL,
                                     .signature = 0x306c3,
                                     .leaves = 0xd,
                                     .depth = 16,
                                     .format = 4 };
static const struct type skylake = { .name = "Skylake",
                                     .vendor = INTEL,
                                     .signature = 0x506e3,
                                     .leaves = 0x16,
                                     .depth = 32,
                                     .format = 5,
                                     .info = true };
// Flags in FROM, cycles in TO, no MSR_LBR_INFO.
static const struct type goldmont = { .name = "Goldmont",
                                      .vendor = INTEL,
                                      .signature = 0x506c9,
                                      .leaves = 0x15,
                                      .depth = 32,
                                      .format = 6 };
static const struct type golden_cove = { .name = "Golden Cove",
                                         .vendor = INTEL,
                                         .signature = 0x90672,
                                         .leaves = 0x20,
                                         .leaf_7_edx = 1 << 19,
                                         .lbr_eax = 0x4000000f,
                                         .lbr_ebx = 7,
                                         .depth = 32,
                                         .info = true };
static const struct type *const types[] = { &haswell, &skylake, &goldmont,
                                            &golden_cove };

static struct lbr start(const struct type *type)
{
    struct lbr l;
    memset(&cpu, 0, sizeof(cpu));
    cpu.type = *type;
    const char *why = lbr_detect(&l, &model_io);
    if (why)
        fail_msg("%s: %s", type->name, why);
    assert_int_equal(l.depth, type->depth);
    assert_false(lbr_records(&l));
    assert_int_equal(cpu.select | cpu.control | cpu.debugctl, 0);
    return l;
}

static void refused(struct type type, const char *why)
{
    struct lbr l;
    memset(&cpu, 0, sizeof(cpu));
    cpu.type = type;
    if (type.in_use)
        cpu.debugctl = cpu.control = 1;
    const char *said = lbr_detect(&l, &model_io);
    assert_non_null(said);
    assert_string_equal(said, why);
    assert_true(strlen(said) < 64); // system.profile.callers
    if (!type.in_use)
        assert_int_equal(cpu.select | cpu.control | cpu.debugctl, 0);
}

static void detected(void **state UNUSED)
{
    struct type t = haswell;
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        start(types[i]);
        t = *types[i];
        t.in_use = true;
        refused(t, "its branch records are in use by the firmware");
        t = *types[i];
        t.fault = true;
        refused(t, "the registers of its branch records fault");
        t = *types[i];
        t.ignore = true;
        refused(t, "the registers of its branch records ignore writes");
    }
    t = haswell;
    t.signature = 0x106a5; // Nehalem
    refused(t, NO_CALL_STACK);
    t.signature = 0x30678; // Silvermont
    refused(t, NO_CALL_STACK);
    t.signature = 0xf34; // Pentium 4
    t.leaves = 2;
    refused(t, NO_CALL_STACK);
    t = haswell;
    t.vendor = 0x68747541; // AMD
    refused(t, NO_CALL_STACK);
    t = haswell;
    t.no_format = true;
    refused(t, "the format of its branch records is not known");
    t.no_format = false;
    t.format = 0x1f;
    refused(t, "the format of its branch records is not known");
    t = golden_cove;
    t.lbr_ebx = 3;
    refused(t, "no call-stack mode of branch records (CPUID leaf 1CH)");
}

// --- code -------------------------------------------------------------------

// Call instructions begin at multiples of 16, of which each has one of these:
// a call of the next instruction, those that differ from it in one byte, and
// those that cannot be read.
enum code {
    CODE_NEXT,
    CODE_FAR_1, // the first byte of the displacement is not 0
    CODE_FAR_4 = 4,
    CODE_INDIRECT,
    CODE_AWAY,
    CODE_AWAY_BEHIND, // the second half is in a page that is not present
    CODES
};

static enum code code_at(u32 at)
{
    return at / 16 % CODES;
}

static bool read_code(void *arg, u32 at, u8 *byte)
{
    u32 code = code_at(at), i = at % 16;
    assert_ptr_equal(arg, &cpu);
    if (code == CODE_AWAY || (code == CODE_AWAY_BEHIND && i > 2))
        return false;
    *byte = i == 0 ? 0xe8 : i == code;
    if (code == CODE_INDIRECT && i == 0)
        *byte = 0xff;
    return true;
}

static const struct lbr_code code = { read_code, &cpu };

// --- a thread's calls -------------------------------------------------------

// A call of the next instruction is recorded like any other, and taken out by
// the next return.
struct thread {
    u32 from[CALLS_MAX], to[CALLS_MAX], depth;
    u32 known; // of these, the innermost ones that must be recorded
    struct lbr_stack stack;
};

// The kernel runs in between: its calls are not recorded.
static void interrupt(void)
{
    u32 n = random_below(5);
    for (u32 i = 0; i < n; i++)
        call(0xc0100000 + i, 0xc0100100, false);
    for (u32 i = 0; i < n; i++)
        ret(false);
}

static void run(struct thread *t, const struct lbr *l, u32 steps)
{
    for (u32 i = 0; i < steps; i++) {
        bool deeper = random_below(100) < 52;
        if (deeper && t->depth < CALLS_MAX) {
            u32 from = 0x8048000 + random_below(1 << 16) * 16;
            u32 to = from + (code_at(from) == CODE_NEXT ? 5 : 0x1000);
            t->from[t->depth] = from;
            t->to[t->depth++] = to;
            t->known = MIN(t->known + 1, l->depth);
            call(from, to, true);
        } else if (!deeper && t->depth) {
            t->depth--;
            t->known -= t->known > 0;
            ret(true);
        }
        if (!random_below(10))
            interrupt();
    }
}

static void check(const struct thread *t, const struct lbr *l)
{
    u32 out[LBR_DEPTH_MAX + 1], n = 0;
    u32 count = lbr_list(l, &code, out, ARRAY_SIZE(out));
    for (u32 i = 0; i < t->known; i++) {
        u32 from = t->from[t->depth - 1 - i];
        if (code_at(from) == CODE_NEXT)
            continue;
        assert_true(n < count);
        assert_int_equal(out[n++], from + 1);
    }
    assert_int_equal(n, count);
    assert_int_equal(lbr_list(l, &code, out, 3), MIN(3u, n)); // a full record
}

static void calls_are_followed(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        struct thread t = { 0 };
        struct lbr l = start(types[i]);
        run(&t, &l, 20); // not recorded yet: these callers stay unknown
        t.known = 0;
        cpu.debugctl = 1 << 11 | 1 << 14; // freezes records; in SMM
        lbr_begin(&l);
        assert_true(lbr_records(&l));
        assert_int_equal(cpu.debugctl & ~1ull, 1 << 14);
        for (u32 round = 0; round < 2000; round++) {
            run(&t, &l, random_below(8));
            check(&t, &l);
        }
        lbr_end(&l);
        assert_false(lbr_records(&l));
        assert_int_equal(cpu.debugctl, 1 << 14);
        assert_int_equal(cpu.faults, 0);
    }
}

// Threads take turns; stacks also move to a CPU that keeps fewer calls.
static void threads_do_not_mix(void **state UNUSED)
{
    static struct thread threads[5];
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        memset(threads, 0, sizeof(threads));
        struct lbr l = start(types[i]);
        lbr_begin(&l);
        for (u32 round = 0; round < 3000; round++) {
            struct thread *t = &threads[random_below(ARRAY_SIZE(threads))];
            lbr_replace(&l, &t->stack);
            run(t, &l, random_below(60));
            check(t, &l);
            lbr_store(&l, &t->stack);
            assert_int_equal(t->stack.count, t->known);
            for (u32 n = 0; n < t->known; n++) {
                u32 at = t->depth - t->known + n;
                assert_int_equal(t->stack.from[n], t->from[at]);
                assert_int_equal(t->stack.to[n], t->to[at]);
            }
        }
    }
    struct lbr l = start(&haswell); // the last were of 32 entries
    lbr_begin(&l);
    for (u32 i = 0; i < ARRAY_SIZE(threads); i++) {
        struct thread *t = &threads[i];
        lbr_replace(&l, &t->stack);
        t->known = MIN(t->known, l.depth);
        check(t, &l);
        run(t, &l, 100);
        check(t, &l);
    }
}

// The CPU stops to record at a debug exception.
static void debug_exception(void **state UNUSED)
{
    struct lbr l = start(&skylake);
    lbr_begin(&l);
    cpu.debugctl &= ~1ull;
    assert_false(lbr_records(&l));
    lbr_begin(&l);
    assert_true(lbr_records(&l));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detected),
        cmocka_unit_test(calls_are_followed),
        cmocka_unit_test(threads_do_not_mix),
        cmocka_unit_test(debug_exception),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
