// The audit under load, from several threads at once, and under NMIs.

#include "arch/i386/irq/apic.h"
#include "arch/nmi.h"
#include "kernel/mm/heap.h"
#include "kernel/monitor/audit.h"
#include "tests/kernel/thread_helpers.h"

#define AUDITORS 4
#define AUDITS 50 // of each, on one CPU
#define THREADS 16

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
            lapic_send_nmi_others();
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
