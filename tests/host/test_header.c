// The header of reports: it shows every deviation from the requested options,
// and no value that is unknown.
// link: user/libprofile/check.c user/libprofile/binomial.c
// link: user/libprofile/task_times.c
// link: user/libprofile/programs.c
// link: user/libstrobe/core_clock.c
// link: user/libprofile/header.c user/libprofile/shares.c
// link: user/libprofile/samples_cut.c user/libprofile/sources.c
// link: user/libstrobe/kbox.c user/libstrobe/sysinfo.c
// link: user/libstrobe/messages.c user/libprofile/header_json.c
// link: user/libstrobe/table.c
#define _GNU_SOURCE
#include "user/libprofile/header.h" // before cmocka, which has a fail(), too

#include "test.h"

static struct samples samples;
static char *text;
static u64 unknown;

static struct sprofile_info plain(void)
{
    return (struct sprofile_info){
        .source = "nmi-hpet",
        .rate_hz = 1000,
        .cpus = 2,
        .period = 1000000,
        .expected = 90,
        .taken = 80,
        .user = 70,
        .kernel = 10,
        .irqs_off = 20,
        .others = 5,
        .missed = 3,
        .cycles = 8500,
        .interrupts = 34,
        .tool_cycles = 20000000,
        .tsc_hz = 1000000000,
        .elapsed_ns = 1000000000,
    };
}

static void print(const struct sprofile_info *info,
                  const struct sprofile_options *asked, bool json)
{
    size_t size;
    free(text);
    FILE *out = open_memstream(&text, &size);
    if (json)
        header_print_json(out, info, asked, &samples, unknown);
    else
        header_print(out, info, asked, &samples, 0, unknown);
    fclose(out);
}

static void says(const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no '%s' in:\n%s", part, text);
}

static void says_not(const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("unexpected '%s' in:\n%s", part, text);
}

static void all_well(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct sprofile_options asked = { 0 };

    print(&info, &asked, false);
    assert_string_equal(
        text,
        "Source:  nmi-hpet at 1000 Hz on 2 CPUs, at fixed distances\n"
        "Samples: 90 expected, 80 taken, 0 lost, 0 unknown; 70 user, 10 kernel;"
        " 25.0% with interrupts off\n"
        "Ticks:   3 missed (came late); 5 outside the target\n"
        "Cost:    250 cycles a sample, 0.000 % of the CPUs in interrupts; "
        "1.000 %"
        " the tool itself\n");
    info.random = 1;
    print(&info, &asked, false);
    says("Source:  nmi-hpet at 1000 Hz on 2 CPUs, at random\n");
    print(&info, &asked, true);
    says("\"random\": 1,\n");
    says("\"expected\": 90,\n");
    says("\"tasks_lost\": 0,\n");
    says("\"check\": null,\n");
    says("\"cycles\": 8500,\n  \"interrupts\": 34,\n"
         "  \"tool_cycles\": 20000000,\n");
}

// Recordings from before 2026-11: only the cost of the samples is known.
static void older_recording(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct sprofile_options asked = { 0 };

    info.interrupts = info.tool_cycles = 0;
    print(&info, &asked, false);
    says("Cost:    100 cycles a sample, 0.000 % of the CPUs in interrupts\n");
}

// What the cycles of this report are: nothing is said where nothing is known.
static void clock_named(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct sprofile_options asked = { 0 };

    info.clock.idle = STROBE_IDLE_HLT;
    print(&info, &asked, false);
    says_not("Clock:");
    info.clock.tsc = STROBE_TSC_INVARIANT;
    info.clock.turbo = STROBE_TURBO_OFF;
    print(&info, &asked, false);
    says(" the tool itself\nClock:   TSC 1.000 GHz, constant; turbo off; idle "
         "by HLT (C1)\n");
    print(&info, &asked, true);
    says("\"tsc_hz\": 1000000000,\n  \"clock\": {\"tsc\": \"invariant\", ");
}

// What the percentages are of, and their precision.
static void shares_said(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct sprofile_options asked = { 0 };
    struct sample_count counts[] = {
        { .samples = 90, .period = 90, .squares = 90 },
        { .samples = 10, .period = 10, .squares = 10, .mode = MODE_KERNEL },
        { .samples = 99, .period = 99, .squares = 99, .mode = MODE_IDLE },
        { .samples = 99, .period = 99, .squares = 99, .event = 1 },
    };

    struct chain_node whole = { 0 };

    samples.counts = counts;
    samples.count = 4;
    samples.chains.nodes = &whole;
    print(&info, &asked, false);
    says("Shares:  of time, by 100 samples at fixed distances: no error can be "
         "stated\n");
    print(&info, &asked, true);
    says("\"error_of_half\": null,\n");
    info.random = 1;
    print(&info, &asked, true);
    says("\"error_of_half\": 9.800,\n");
    print(&info, &asked, false);
    says("Shares:  of time, by 100 samples: 50 % +- 9.8, 10 % +- 5.9, 1 % +- "
         "2.0 (95 % sure)\n");
    says_not("Names:");
    says_not("at the same moments");
    counts[1].cpu = 1;
    counts[1].thread = 1;
    print(&info, &asked, false);
    says("(95 % sure)\n         2 CPUs are sampled at the same moments: up to "
         "+- "
         "13.9 at 50 % where they do the\n         same\n");
    info.user_cycles = 900;
    info.kernel_cycles = 100;
    info.idle_cycles = 990;
    print(&info, &asked, false);
    says("Check:   user 45.2 % (ledger 45.2), kernel 5.0 % (ledger 5.0), idle "
         "49.7 % (ledger 49.7): no more than chance (p = 1)\n");
    info.idle_cycles = 90;
    print(&info, &asked, false);
    says(": not by chance");
    counts[1].period = 60; // six ticks each
    counts[1].squares = 360;
    strcpy(info.event, "cycles");
    unknown = 3;
    print(&info, &asked, false);
    says("Shares:  of cycles, by 100 samples (as precise as 50 of equal "
         "weight): 50 % +- 13.9,");
    says("Names:   3 samples lie in no function that their files name\n");
    unknown = 0;
    samples.counts = NULL;
    samples.count = 0;
    samples.chains.nodes = NULL;
}

// A fixed number of events between samples: neither the rate nor the expected
// number of samples is known.
static void by_period(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct sprofile_options asked = { .period = 1000, .event = "cycles" };

    strcpy(info.source, "pmc");
    strcpy(info.event, "cycles");
    info.rate_hz = 0;
    info.period = 1000;
    info.expected = 0;
    print(&info, &asked, false);
    says("Source:  pmc, every 1000 cycles on 2 CPUs, at fixed distances\n");
    says("Samples: 80 taken, 0 lost");
    says_not("expected");
    print(&info, &asked, true);
    says("\"expected\": null,\n");
    says_not("was asked");
    asked.period = 70000; // beside a session that began earlier
    print(&info, &asked, false);
    says("every 1000 cycles on 2 CPUs, at fixed distances; every 70000 was "
         "asked\n");
    print(&info, &asked, true);
    says("\"period_asked\": 70000,\n");
}

// At a rate, the expected number of samples is known only for cycles.
static void events_at_a_rate(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct sprofile_options asked = { .event = "branches" };

    strcpy(info.source, "pmc");
    strcpy(info.event, "branches");
    info.period = info.expected = 0;
    print(&info, &asked, false);
    says("Source:  pmc at 1000 Hz on 2 CPUs");
    says("Samples: 80 taken, 0 lost");
    print(&info, &asked, true);
    says("\"expected\": null,\n");
    strcpy(info.event, "cycles");
    info.period = 2600000;
    info.expected = 90;
    print(&info, &asked, false);
    says("Samples: 90 expected, 80 taken");
}

static void other_than_asked(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct sprofile_options asked = { .rate_hz = 1500,
                                      .flags = SPROFILE_O_RANDOM,
                                      .event = "branches" };

    print(&info, &asked, false);
    says(", at fixed distances; ");
    says("; it counts no branches");
    says("; 1500 Hz was asked");
}

static void trouble(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct sprofile_options asked = { 0 };

    info.throttled = 11;
    info.in_sampling = 17;
    info.irq = 1;
    info.idle = 2;
    info.tasks_lost = 13;
    info.times_lost = 14;
    samples.reader.malformed = 14;
    print(&info, &asked, false);
    samples.reader.malformed = 0;
    says("; 17 due in sampling; 11 throttled (sampling took too much)\n");
    says(", 1 irq, 2 idle;");
    says("Tasks:   of 13 changes was not heard\n");
    says("Tasks:   14 exact times did not fit into memory: Check is not by "
         "task\n");
    says("Corrupt: 14 records were not understood or counted\n");
}

// At fixed distances all of the cost may be one row's.
static void lean(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct sprofile_options asked = { 0 };

    info.random = false;
    info.cycles = info.tsc_hz * info.cpus * (info.elapsed_ns / 1e9) * 0.125;
    print(&info, &asked, false);
    says("Lean:    at fixed distances a row that is dear to sample may have up "
         "to 12.5 %\n         too much (-R: none)\n");
    print(&info, &asked, true);
    says("\"lean\": 12.500,\n");
    info.random = true;
    assert_true(header_lean(&info) == 0);
    info.random = false;
    info.cycles = info.cycles / 125 * 49;
    assert_true(header_lean(&info) == 0);
}

static void chains_not_whole(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct sprofile_options asked = { .flags = SPROFILE_O_STACKS };
    struct chain_node nodes[] = {
        { .marks = 0 },
        { .marks = 1 << CHAIN_DEEP },
        { .marks = 1 << CHAIN_BROKEN | 1 << CHAIN_UNREADABLE },
        { .marks = 1 << CHAIN_SHORT },
    };
    struct sample_count counts[] = {
        { .chain = 0, .samples = 750 },
        { .chain = 1, .samples = 200 },
        { .chain = 2, .samples = 50 },
        { .chain = 3, .samples = 10 },
    };

    print(&info, &asked, false);
    says("Chains:  0.0% of 0 not whole\n");
    samples.chains.nodes = nodes;
    samples.counts = counts;
    samples.count = 3;
    samples.total = 1000;
    print(&info, &asked, false);
    says("Chains:  25.0% of 1000 not whole; 5.0% lack callers (no frame "
         "pointers? -g=dwarf); 20.0% deeper than 127 frames; 5.0% in unmapped "
         "memory\n");
    print(&info, &asked, true);
    says("\"cut\": 250,\n");
    says("\"cut_broken\": 50,\n");
    says("\"cut_deep\": 200,\n");
    says("\"cut_unreadable\": 50,\n");
    says("\"cut_beyond_copy\": 0,\n");
    samples.count = 4;
    samples.total = 1010;
    asked.flags |= SPROFILE_O_DEEP;
    print(&info, &asked, false);
    says("; 1.0% beyond the 8192 bytes of the stack's copy (-g=dwarf,SIZE)\n");
    asked.stack_bytes = 512;
    print(&info, &asked, false);
    says("; 1.0% beyond the 512 bytes of the stack's copy (-g=dwarf,SIZE)\n");
    print(&info, &asked, true);
    says("\"cut_beyond_copy\": 10,\n");
    samples.chains.nodes = NULL;
    samples.counts = NULL;
    samples.count = 0;
    samples.total = 0;
}

// v86: the source of the highest rank was chosen, and did not interrupt.
static void starved(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct sprofile_options asked = { 0 };

    info.expected = 4035;
    info.taken = info.missed = 0;
    print(&info, &asked, false);
    assert_ptr_equal(strstr(text, "Wrong:   0 of 4035 samples came"), text);
    says("-s NAME");
    print(&info, &asked, true);
    says("\"starved\": true");
    info.taken = 4035 / STARVED_PART;
    assert_false(header_starved(&info));
    info.taken--;
    assert_true(header_starved(&info));
    info.lost = 100; // part of those taken
    assert_true(header_starved(&info));
    info.throttled = 3000; // these came; the header counts them
    assert_false(header_starved(&info));
    info.throttled = 0;
    info.in_sampling = 200;
    assert_false(header_starved(&info));
    info.in_sampling = 0;
    info.missed = 200;
    assert_false(header_starved(&info));
    info.missed = 0;
    info.expected = STARVED_LEAST - 1;
    info.taken = 0;
    assert_false(header_starved(&info));
    info.expected = 4035;
    info.rate_hz = 0; // by period: it is not known how many will come
    assert_false(header_starved(&info));
    info = plain();
    print(&info, &asked, true);
    says("\"starved\": false");
}

// The ticks of a timer come due on every CPU. Those of the target are missing
// if a CPU had none, and not if they came while something else ran.
static void elsewhere(void **state UNUSED)
{
    struct sprofile_info info = plain();

    info.expected = 1000;
    info.taken = info.missed = 0;
    info.others = 1000;
    assert_true(header_starved(&info)); // due: 2000 on both CPUs
    info.others = 1990;
    assert_false(header_starved(&info));
    strcpy(info.event, "cycles"); // how many came due is not known
    assert_true(header_starved(&info));
}

// The host ran the machine for 1.5 of each 41.5 ms: every tick is accounted
// for, and no other source would have more samples.
static void host_busy(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct sprofile_options asked = { 0 };

    info.cpus = 1;
    info.expected = 60754;
    info.taken = 2555;
    info.missed = 58199;
    print(&info, &asked, false);
    says_not("Wrong:");
    says("Late:    the host kept the machine for 58199 of 60754 ms:\n");
    says(" Another source\n         does not help\n");
    says_not("icount");
    print(&info, &asked, true);
    says("\"starved\": false");
    says("\"late\": true");
    info.cpus = 8;
    print(&info, &asked, false);
    says(
        "Late:    the host, or (QEMU --icount) the other CPUs' turns, kept the "
        "CPUs for 58199 of 60754 ms:\n");
    strcpy(info.source, "lapic");
    print(&info, &asked, false);
    says("Late:    interrupts were off, or the host, or (QEMU --icount)");
    says_not("does not help");
    info.missed = 2555 / LATE_PART;
    print(&info, &asked, false);
    says_not("Late:");
    info.missed = 58199; // periods that were merged on purpose
    strcpy(info.event, "cycles");
    print(&info, &asked, false);
    says_not("Late:");
}

// No sample takes a tenth of a millisecond of a CPU of more than 10 MIPS.
static void kept_in_samples(void **state UNUSED)
{
    struct sprofile_info info = plain();
    struct sprofile_options asked = { 0 };

    info.cycles = 100000ull * info.interrupts; // of a nanosecond
    print(&info, &asked, false);
    says_not("sampling alone");
    info.cycles++;
    print(&info, &asked, false);
    says(" the tool itself\n         That is much for sampling alone: this CPU "
         "is slow, or the host, or (QEMU --icount) the other CPUs' turns,\n"
         "         kept CPUs in the middle of interrupts\n");
    info.cpus = 1;
    print(&info, &asked, false);
    says("the host\n");
}

// Where code with interrupts off is not seen, no share of it is stated.
static void masked(void **state UNUSED)
{
    static const struct {
        const char *source, *text, *json;
    } cases[] = {
        { "nmi-pit", "; 25.0% with interrupts off\n", "\"irqs_off\": 20," },
        { "pmc", "; 25.0% with interrupts off\n", "\"irqs_off\": 20," },
        { "nmi-ipi", "; 25.0% with interrupts off (not seen on CPU 0)\n",
          "\"irqs_off\": 20," },
        { "lapic", "; interrupts off: not seen by lapic\n",
          "\"irqs_off\": null," },
        { "trace", "; interrupts off: not known\n", "\"irqs_off\": null," },
    };
    struct sprofile_info info = plain();
    struct sprofile_options asked = { 0 };

    for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
        strcpy(info.source, cases[i].source);
        print(&info, &asked, false);
        says(cases[i].text);
        print(&info, &asked, true);
        says(cases[i].json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starved),          cmocka_unit_test(all_well),
        cmocka_unit_test(older_recording),  cmocka_unit_test(shares_said),
        cmocka_unit_test(by_period),        cmocka_unit_test(events_at_a_rate),
        cmocka_unit_test(other_than_asked), cmocka_unit_test(lean),
        cmocka_unit_test(trouble),          cmocka_unit_test(chains_not_whole),
        cmocka_unit_test(clock_named),      cmocka_unit_test(elsewhere),
        cmocka_unit_test(host_busy),        cmocka_unit_test(masked),
        cmocka_unit_test(kept_in_samples),
    };

    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(text);
    return failed;
}
