// A CPU that becomes too hot slows itself down, and says so by an interrupt of
// its thermal sensor (SDM vol. 3B, 15.8.2.5 and 15.8.5). It is counted, and
// logged at most once a minute: it comes again and again while the machine is
// hot.
//
// The firmware may have the interrupt for itself, as an SMI: then it stays
// there. `log_lock` guards `next_log`.
#include "arch/i386/cpu/thermal.h"

#include "arch/clock.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/heat.h"
#include "arch/i386/cpu/msr.h"
#include "arch/i386/irq/apic.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/errors.h"
#include "kernel/base/log.h"
#include "kernel/sync/spinlock.h"

#define MSR_THERM_INTERRUPT 0x19b
#define INTERRUPT_HOT 0x01 // when the CPU begins to throttle itself
#define MSR_THERM_STATUS 0x19c

ERROR_COUNTER(throttled, "CPUs throttled by heat",
              "slower until they are cooler; logged once a minute");

static bool used; // the boot CPU's choice, for all
static struct spinlock log_lock = SPINLOCK_INIT("thermal");
static u64 next_log;

static bool log_is_due(void)
{
    u64 now = clock_now_ns();
    u32 flags = spin_lock_irq(&log_lock);
    bool due = heat_is_logged(&next_log, now);
    spin_unlock_irq(&log_lock, flags);
    return due;
}

static void interrupt(void *arg UNUSED)
{
    u64 status = 0;
    read_msr_safely(MSR_THERM_STATUS, &status);
    if (!heat_counts(status))
        return;
    write_msr_safely(MSR_THERM_STATUS, heat_cleared(status));
    error_count(&throttled);
    if (log_is_due())
        log_printf("cpu %u: throttled by heat (%u times on all CPUs)\n",
                   this_cpu()->id, error_counter_read(&throttled));
}

static void choose(void)
{
    if (lapic_thermal_taken()) {
        log_printf("cpu: throttling by heat is not seen: the firmware has the "
                   "interrupt\n");
        return;
    }
    irq_register_vector(VECTOR_THERMAL, interrupt, NULL, "thermal");
    used = true;
}

void thermal_init_cpu(void)
{
    u64 enabled = 0, status = 0;
    if (!cpu_features.thermal || !apic_present)
        return;
    if (this_cpu()->id == 0)
        choose();
    if (!used || !read_msr_safely(MSR_THERM_INTERRUPT, &enabled) ||
        !read_msr_safely(MSR_THERM_STATUS, &status))
        return;
    write_msr_safely(MSR_THERM_STATUS, heat_cleared(status));
    lapic_thermal(VECTOR_THERMAL);
    write_msr_safely(MSR_THERM_INTERRUPT, enabled | INTERRUPT_HOT);
}
