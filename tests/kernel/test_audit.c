// The audit under load, from several threads at once, and under NMIs.

#include "arch/i386/irq/apic.h"
#include "arch/nmi.h"
#include "kernel/mm/heap.h"
#include "kernel/monitor/audit.h"
#include "kernel/stream/stream.h"
#include "tests/kernel/sample_helpers.h"
#include "tests/kernel/thread_helpers.h"

#define AUDITORS 4
#define AUDITS 50 // of each, on one CPU
#define THREADS 16
#define SAMPLES 50
#define SAMPLED_AUDITS 100   // on one CPU
#define SAMPLES_HZ 20000     // on one CPU: NMIs come in many audits
#define SAMPLES_SLOW_HZ 1000 // on several CPUs, which may be slow emulated ones
#define SWITCHING_CPUS_MAX 4 // more would take turns on the host's for a minute
#define SWITCHING_AUDITS 400 // on one CPU

static u32 wrong, begun; // atomic

static bool balances(const struct audit *a)
{
    u64 user = 0, kernel = 0;
    for (u32 i = 0; i < a->cpus; i++) {
        const struct ledger_sums *s = &a->cpu[i];
        if (s->user + s->kernel + s->irq + s->idle + s->start_up != s->elapsed)
            return false;
        user += s->user;
        kernel += s->kernel;
    }
    return user == a->threads_user && kernel == a->threads_kernel;
}

static bool audit_balances(void)
{
    struct audit *a = audit_alloc();
    if (!a)
        panic("no memory for a test");
    audit_take(a);
    bool balanced = balances(a);
    kfree(a);
    return balanced;
}

static void audit_often(void *arg)
{
    bool nmis = arg != NULL;
    __atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
    while (READ_ONCE(begun) < AUDITORS)
        sched_yield();
    for (u32 i = 0; i < test_rounds(AUDITS); i++) {
        if (nmis)
            nmi_send_others();
        if (!audit_balances())
            __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
        if (i % 8 == 0)
            sched_yield();
    }
    report_done();
}

static void run(bool nmis)
{
    reset();
    wrong = begun = 0;
    for (u32 i = 0; i < AUDITORS; i++)
        start(audit_often, (void *)nmis);
    wait_for(AUDITORS);
    expect(wrong == 0);
}

KERNEL_TEST(audit_by_several_at_once)
{
    run(false);
}

static bool claim_nmi(struct nmi_owner *owner UNUSED,
                      const struct trapframe *tf UNUSED)
{
    return true;
}

KERNEL_TEST(audit_while_nmis_come)
{
    static struct nmi_owner user = { claim_nmi };
    if (!apic_present || nmi_claim(&user)) {
        test_skip("no NMIs: no local APIC, or they are in use");
        return;
    }
    run(true);
    nmi_release(&user);
}

static void work_and_sleep(void *arg UNUSED)
{
    for (u32 i = 0; i < 50; i++) {
        sched_yield();
        thread_sleep_until(clock_now_ns() + test_random() % 100000,
                           WAIT_UNINTERRUPTIBLE);
    }
    report_done();
}

KERNEL_TEST(audit_balances_under_load)
{
    reset();
    for (u32 i = 0; i < THREADS; i++)
        start(work_and_sleep, NULL);
    while (READ_ONCE(done_count) < THREADS) {
        expect(audit_balances());
        sched_yield();
    }
    wait_for(THREADS);
}

// NMIs come within audits, and the accounts that they change must wait.
KERNEL_TEST(audit_while_sampled)
{
    static struct waitq readers = WAITQ_INIT(readers, "test");
    struct sprofile_options o = {
        .size = sizeof(o),
        .rate_hz = cpu_count == 1 ? SAMPLES_HZ : SAMPLES_SLOW_HZ,
    };
    struct sprofile_info info;
    struct stream *s;
    u32 audits = 0;
    if (!expect_begun(session_begin(&kernel_task, &o, &readers, &s)))
        return;
    do {
        expect(audit_balances());
        session_info(s, &info);
    } while (++audits < test_rounds(SAMPLED_AUDITS) || info.taken < SAMPLES);
    session_end(s);
}

static bool over;
static u32 placed, switches; // atomic

static void yield_always(void *arg)
{
    expect(!run_on(current, (u32)arg));
    __atomic_add_fetch(&placed, 1, __ATOMIC_RELAXED);
    while (!READ_ONCE(over)) {
        sched_yield();
        __atomic_add_fetch(&switches, 1, __ATOMIC_RELAXED);
    }
    report_done();
}

// Two threads on each other CPU switch there all the time: an audit must stop
// these CPUs. Only audits count between whose begin and end others have run: if
// CPUs are emulated in turn, a turn may be longer than many audits.
KERNEL_TEST(audit_while_other_cpus_switch)
{
    u32 others = cpu_count - 1;
    struct cpu_set affinity = current->affinity;
    if (!others || cpu_count > SWITCHING_CPUS_MAX) {
        test_skip(others ? "too many CPUs that never wait"
                         : "there is no other CPU");
        return;
    }
    reset();
    over = false;
    placed = 0;
    expect(!run_on(current, 0));
    for (u32 i = 0; i < 2 * others; i++)
        start(yield_always, (void *)(1 + i % others));
    while (READ_ONCE(placed) < 2 * others)
        sleep_ms(1);
    bool balanced = true;
    for (u32 i = 0; balanced && i < test_rounds(SWITCHING_AUDITS);) {
        u32 before = READ_ONCE(switches);
        balanced = audit_balances();
        i += READ_ONCE(switches) != before;
    }
    expect(balanced);
    WRITE_ONCE(over, true);
    wait_for(2 * others);
    thread_set_affinity(current, &affinity);
}
