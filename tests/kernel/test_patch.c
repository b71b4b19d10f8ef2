// Patching the kernel's code: all function entries on and off under load, two
// users of a branch, an interrupt at each instruction around a site, W^X.
#include "arch/regs.h"
#include "arch/text.h"
#include "arch/trap.h"
#include "kernel/base/providers.h"
#include "kernel/sched/stop_machine.h"
#include "kernel/time/callout.h"
#include "kernel/trace/patch.h"
#include "lib/branch.h"
#include "lib/string.h"
#include "tests/kernel/load_helpers.h"

#define ROUNDS 25u // on one CPU
#define NMI_PERIOD (50 * NSEC_PER_USEC)
#define CALL 0xe8 // the instruction's first byte

// What the patched functions call: it changes nothing but a count.
u32 stub_calls;
void stub(void);
__asm__(".text\n"
        ".type stub, @function\n"
        "stub:\n\t"
        "lock incl stub_calls\n\t"
        "ret\n");

static u32 sites(void)
{
    return (u32)(text_entries_end - text_entries_start);
}

static void patch_all(bool on)
{
    text_patch(text_entries_start, sites(), (u32)stub, on);
}

// --- all function entries, under load ---------------------------------------

static u32 nmis; // atomic

static void count_nmi(void *arg UNUSED, const struct trapframe *tf UNUSED)
{
    __atomic_add_fetch(&nmis, 1, __ATOMIC_RELAXED);
}

// With NMIs at 20 kHz, where a timer sends them.
static struct timer *start_nmis(void)
{
    struct timer *t;
    if (timer_reserve(TIMER_PERIODIC | TIMER_NMI, NMI_PERIOD, NMI_PERIOD,
                      "a test", &t))
        return NULL;
    expect(!timer_start(t, TIMER_PERIODIC | TIMER_NMI, NMI_PERIOD, count_nmi,
                        NULL));
    return t;
}

KERNEL_TEST(patch_all_entries)
{
    u32 before = text_checksum();
    expect(sites() > 1000);
    struct timer *t = start_nmis();
    nmis = 0;
    start_load();
    u32 rounds = test_rounds(ROUNDS);
    for (u32 i = 0; i < rounds || (t && READ_ONCE(nmis) <= ROUNDS); i++) {
        u32 calls = READ_ONCE(stub_calls);
        patch_all(true);
        while (READ_ONCE(stub_calls) - calls <= 100)
            sleep_ms(1);
        patch_all(false);
        expect(text_checksum() == before);
        calls = READ_ONCE(stub_calls);
        sleep_ms(1);
        // Each thread that was preempted in the stub goes on there once.
        expect(READ_ONCE(stub_calls) - calls <= thread_count());
    }
    end_load(0);
    if (t)
        timer_release(t);
}

// Single entries.
KERNEL_TEST(patch_each_entry)
{
    u32 before = text_checksum();
    u32 step = 2 * sites() / test_rounds(400);
    for (u32 i = 0; i < sites(); i += 1 + test_random() % step) {
        const u32 *site = &text_entries_start[i];
        const u8 *code = (const u8 *)*site;
        u32 distance;
        text_patch(site, 1, (u32)stub, true);
        memcpy(&distance, code + 1, sizeof(distance));
        expect(code[0] == CALL && *site + TEXT_SITE + distance == (u32)stub);
        text_patch(site, 1, (u32)stub, false);
    }
    expect(text_checksum() == before);
}

// --- branches ---------------------------------------------------------------

static struct branch tested;

static NOINLINE u32 count_branches(void)
{
    u32 n = 0;
    if (branch_on(&tested))
        n += 1;
    barrier();
    if (branch_on(&tested))
        n += 10;
    return n;
}

static void count_on_each_cpu(void *counts)
{
    ((u32 *)counts)[this_cpu()->id] = count_branches();
}

static bool all_cpus_count(u32 expected)
{
    static u32 counts[CPU_MAX];
    smp_call_all(count_on_each_cpu, counts);
    for (u32 i = 0; i < cpu_count; i++) {
        if (counts[i] != expected)
            return false;
    }
    return true;
}

KERNEL_TEST(patch_branches_have_users)
{
    u32 before = text_checksum();
    expect(all_cpus_count(0));
    branch_set(&tested, true);
    expect(all_cpus_count(11));
    branch_set(&tested, true);
    branch_set(&tested, false);
    expect(all_cpus_count(11));
    branch_set(&tested, false);
    expect(all_cpus_count(0) && text_checksum() == before);
}

// --- what it costs ----------------------------------------------------------

static struct branch measured;

static NOINLINE u32 twenty_sites(void)
{
    u32 n = 0;
#define SITE                   \
    n += branch_on(&measured); \
    barrier();
#define FIVE_SITES SITE SITE SITE SITE SITE
    FIVE_SITES FIVE_SITES FIVE_SITES FIVE_SITES
#undef FIVE_SITES
#undef SITE
        return n;
}

static u32 instructions(u64 cycles)
{
    return (u32)(cycles / 2); // under `tools/vm --icount 1`
}

// (tools/bench/run reads this.)
KERNEL_TEST(patch_cost)
{
    struct sysinfo_text report;
    patch_all(true);
    patch_all(false);
    text_report(&report); // before it, nothing patches as many sites
    expect(twenty_sites() == 0);
    u64 began = rdtsc();
    branch_set(&measured, true);
    u64 branch = rdtsc() - began;
    expect(twenty_sites() == 20);
    branch_set(&measured, false);
    log_printf("patches: %u entries stop the machine for %u, 20 sites of a "
               "branch take %u instructions\n",
               sites(), instructions(report.longest), instructions(branch));
}

// --- an interrupt at each instruction around a site -------------------------

#define CALLS 5u // after it
#define OFFSETS 300u

static u32 ran;

// The tests' functions have no sites, but this one.
static NOINLINE __attribute__((patchable_function_entry(5))) void patched(void)
{
    WRITE_ONCE(ran, ran + 1);
}

static struct callout toggle_callout;
static bool is_on;
static u32 toggles, calls_when_toggled;

// Only the interrupted CPU runs the function: the others need not wait.
static void toggle(struct callout *c UNUSED)
{
    u32 site = (u32)patched;
    text_open();
    text_write_calls(&site, 1, (u32)stub, !is_on);
    text_close();
    is_on = !is_on;
    toggles++;
    calls_when_toggled = stub_calls;
}

// One round: the number of failures. The call that is interrupted runs the old
// code if it was past the site, else the new. (It may be in the old code's
// stub, before that counts.)
static u32 interrupted_after(u32 offset)
{
    u32 calls = 0, before = READ_ONCE(stub_calls), failures = 0;
    WRITE_ONCE(ran, 0);
    WRITE_ONCE(toggles, 0);
    callout_set(&toggle_callout, clock_now_ns() + offset);
    for (; !READ_ONCE(toggles); calls++)
        patched();
    for (u32 i = 0; i < CALLS; i++, calls++)
        patched();
    u32 old = READ_ONCE(calls_when_toggled) - before;
    u32 new = READ_ONCE(stub_calls) - READ_ONCE(calls_when_toggled);
    failures += READ_ONCE(ran) != calls || READ_ONCE(toggles) != 1;
    if (READ_ONCE(is_on))
        failures += old != 0 || new < CALLS || new > CALLS + 1;
    else
        failures += new > 1 || old + new + CALLS > calls ||
                    old + new + CALLS + 1 < calls;
    return failures;
}

// With the instructions as the clock (-icount) a nanosecond is an instruction.
KERNEL_TEST(patch_when_interrupted_anywhere)
{
    u32 failures = 0;
    is_on = false;
    callout_init(&toggle_callout, toggle, CALLOUT_INTERRUPT);
    preempt_disable();
    for (u32 offset = 0; offset < OFFSETS * 2; offset++)
        failures += interrupted_after(offset / 2);
    preempt_enable();
    expect(!failures && !is_on);
}

// --- W^X --------------------------------------------------------------------

static u32 writable_and_executable(void)
{
    u32 bad = 0;
    struct mapping m;
    for (u32 va = KERNEL_BASE; va; va += PAGE_SIZE) {
        if (mmu_forbids_execution() &&
            pagetable_lookup(&kernel_pagetable, va, &m))
            bad += (m.prot & PROT_W) && (m.prot & PROT_X);
    }
    return bad;
}

static u32 writable_onto_text(void)
{
    u32 found = 0;
    struct mapping m;
    for (u32 va = WINDOW_BASE; va; va += PAGE_SIZE) {
        if (pagetable_lookup(&kernel_pagetable, va, &m))
            found += m.frame >= image_paddr(text_start) &&
                     m.frame < image_paddr(text_end) && m.prot & PROT_W;
    }
    return found;
}

static void open_and_look(void *bad)
{
    u32 site = text_entries_start[0];
    text_open();
    text_write(site, text_nop, text_nop);
    *(u32 *)bad = writable_and_executable() + (writable_onto_text() == 0);
    text_close();
}

KERNEL_TEST(patch_keeps_pages_write_or_execute)
{
    u32 during = 1;
    expect(!writable_and_executable() && !writable_onto_text());
    stop_machine(open_and_look, &during);
    expect(!during);
    expect(!writable_and_executable() && !writable_onto_text());
}

// --- single bytes -----------------------------------------------------------

KERNEL_TEST(patch_bytes)
{
    // A NOP's last byte, the displacement: another address that is not used.
    u32 at = (u32)patched + TEXT_SITE - 1;
    u8 old = *(u8 *)at;
    u32 before = text_checksum();
    ran = 0;
    text_patch_byte(at, old, 1);
    expect(*(u8 *)at == 1);
    patched();
    text_patch_byte(at, 1, old);
    patched();
    expect(ran == 2 && text_checksum() == before);
}

// --- breakpoints ------------------------------------------------------------

#define INT3 0xcc

static u32 hits;

// Does what the NOP would have done.
static bool hit(struct trapframe *tf)
{
    if (trap_pc(tf) != (u32)patched + 1)
        return false;
    hits++;
    tf->eip = (u32)patched + TEXT_SITE;
    return true;
}

static const struct breakpoint_owner owner = { hit };
BREAKPOINT_OWNER(owner);

KERNEL_TEST(patch_breakpoints_have_owners)
{
    u32 before = text_checksum();
    hits = 0;
    WRITE_ONCE(ran, 0);
    text_patch_byte((u32)patched, text_nop[0], INT3);
    for (u32 i = 0; i < 10; i++)
        patched();
    text_patch_byte((u32)patched, INT3, text_nop[0]);
    patched();
    expect(hits == 10 && READ_ONCE(ran) == 11 && text_checksum() == before);
}

// --- the rendezvous ---------------------------------------------------------

struct seen {
    struct thread *thread;
    u32 counts[CPU_MAX]; // of threads on the other CPUs, at the beginning
    bool moved;
};
static u32 counts[CPU_MAX];

static void count_here(void *arg UNUSED)
{
    while (!__atomic_load_n(&load_over, __ATOMIC_ACQUIRE)) {
        preempt_disable();
        ADD_ONCE(counts[this_cpu()->id], 1);
        preempt_enable();
    }
    report_done();
}

static void look_around(void *arg)
{
    struct seen *s = arg;
    s->thread = current;
    for (u32 i = 0; i < cpu_count; i++)
        s->counts[i] = READ_ONCE(counts[i]);
    cpu_run_instructions(2000);
    for (u32 i = 0; i < cpu_count; i++)
        s->moved |= READ_ONCE(counts[i]) != s->counts[i];
}

// The function runs in the caller's own thread, while no other CPU goes on.
KERNEL_TEST(stop_machine_stops_all_others)
{
    reset();
    WRITE_ONCE(load_over, false);
    for (u32 i = 0; i < cpu_count; i++)
        start(count_here, NULL);
    for (u32 i = 0; i < 20; i++) {
        struct seen s = { 0 };
        stop_machine(look_around, &s);
        expect(s.thread == current && !s.moved);
        sleep_ms(1);
    }
    __atomic_store_n(&load_over, true, __ATOMIC_RELEASE);
    wait_for(cpu_count);
}
