// The audit when several want it at once, and NMIs come in between.

#include "arch/i386/irq/apic.h"
#include "arch/nmi.h"
#include "kernel/monitor/audit.h"
#include "kernel/task/task.h"
#include "tests/kernel/test.h"

#define AUDITORS 4
#define AUDITS 50

static struct waitq done_queue = WAITQ_INIT(done_queue, "test");
static u32 running, wrong;

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

static void audit_often(void *arg)
{
    bool nmis = arg != NULL;
    for (u32 i = 0; i < AUDITS; i++) {
        struct audit a;
        if (nmis)
            lapic_send_nmi_others();
        audit_take(&a);
        if (!balances(&a))
            __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
        if (i % 8 == 0)
            sched_yield();
    }
    __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
    waitq_wake_all(&done_queue);
}

static void run(bool nmis)
{
    wrong = 0;
    running = AUDITORS;
    for (u32 i = 0; i < AUDITORS; i++) {
        if (kthread_create("auditor", audit_often, (void *)nmis, NULL))
            panic("no memory for a test");
    }
    wait_event(&done_queue, !READ_ONCE(running), WAIT_UNINTERRUPTIBLE,
               WAIT_FOREVER);
    expect(wrong == 0);
}

KERNEL_TEST(audit_by_several_at_once)
{
    run(false);
}

static bool claim_nmi(struct nmi_user *user UNUSED,
                      const struct trapframe *tf UNUSED)
{
    return true;
}

KERNEL_TEST(audit_while_nmis_come)
{
    static struct nmi_user user = { claim_nmi };
    if (!apic_present || nmi_take(&user)) {
        test_skip("no NMIs: no local APIC, or they are in use");
        return;
    }
    run(true);
    nmi_give_back(&user);
}
