// Sample source "nmi-ipi": a maskable timer interrupt of the boot CPU samples
// that CPU and sends NMIs to the other CPUs, whose code is sampled even with
// interrupts off. It needs no device but the local APICs.
//
// `sent` counts the ticks for which NMIs are sent. Each CPU remembers the
// count that it has seen (sent_nmis.h).

#include "arch/cpu.h"
#include "arch/nmi.h"
#include "arch/regs.h"
#include "kernel/profile/sent_nmis.h"
#include "kernel/profile/session_private.h"
#include "kernel/profile/ticker.h"

static const struct sample_source nmi_ipi_source;

#define DELAY_NS 1000u // of an NMI that another CPU sends

static u32 sent; // ticks; written by the boot CPU only
static struct ticker ticker;

static struct sent_nmis per_cpu[CPU_MAX];

static bool ipi_nmi(struct nmi_owner *owner UNUSED, const struct trapframe *tf)
{
    u32 ticks, now = __atomic_load_n(&sent, __ATOMIC_ACQUIRE);
    if (!sent_nmis_take(&per_cpu[this_cpu()->id], now, &ticks))
        return false;
    struct sample_hit hit = { tf, ticks, (u64)ticks * ticker.period, rdtsc() };
    if (ticks)
        sample_take(&nmi_ipi_source, &hit);
    return true;
}

static struct nmi_owner nmi_owner = { ipi_nmi };

static void tick(struct ticker *t UNUSED, u32 ticks)
{
    __atomic_store_n(&sent, sent + ticks, __ATOMIC_RELEASE);
    nmi_send_others();
    struct sample_hit hit = { this_cpu()->irq_frame, ticks,
                              (u64)ticks * ticker.period, rdtsc() };
    sample_take_irq(&nmi_ipi_source, &hit);
}

static void start_here(void *arg)
{
    const bool *random = arg;
    ticker_start(&ticker, clock_now_ns() + ticker.period, *random);
}

static int start(const struct sample_source *s UNUSED, struct sample_rate *rate)
{
    for (u32 i = 0; i < cpu_count; i++)
        per_cpu[i] = (struct sent_nmis){ .seen = sent };
    int err = nmi_claim(&nmi_owner);
    if (err)
        return err;
    ticker.period = (u32)NSEC_PER_SEC / rate->hz;
    ticker.fn = tick;
    sample_nmi_delay(DELAY_NS);
    smp_call_boot_cpu(start_here, &rate->random);
    rate->period = ticker.period;
    rate->hz = ((u32)NSEC_PER_SEC + ticker.period / 2) / ticker.period;
    return 0;
}

static void stop(const struct sample_source *s UNUSED)
{
    ticker_stop(&ticker);
    smp_quiesce_others(); // NMIs are taken ahead of IPIs: none is pending
    nmi_release(&nmi_owner);
    smp_quiesce_others(); // the handler has ended
    sample_nmi_delay(SAMPLE_NO_DELAY);
}

// The boot CPU's ticks are those of every CPU.
static u64 ticks_of_all(const struct sample_source *s UNUSED)
{
    return counter_read(&ticker.ticks);
}

static u32 vector(const struct sample_source *s UNUSED)
{
    return VECTOR_NMI;
}

static const char *why_not(const struct sample_source *s UNUSED)
{
    return cpu_count > 1 ? NULL : "needs another CPU to send to";
}

static const struct sample_source nmi_ipi_source = {
    .name = "nmi-ipi",
    .rank = 150,
    .min_hz = 1,
    .max_hz = 20000,
    .nmi = true,
    .sends = true,
    .why_not = why_not,
    .vector = vector,
    .start = start,
    .stop = stop,
    .ticks = ticks_of_all,
};
SAMPLE_SOURCE(nmi_ipi_source);
