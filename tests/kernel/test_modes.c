// Samples of a CPU that is in an interrupt handler, in a thread and idle for
// known shares of the time. The shares are printed; under --icount they are
// exact, and tests/system/test_truth.py checks them.

#include "tests/kernel/test.h"

#include "arch/cpu.h"
#include "kernel/base/errno.h"
#include "kernel/profile/session_private.h"
#include "kernel/task/task.h"
#include "lib/string.h"
#include "tests/kernel/sample_helpers.h"

#define RATE_HZ 8000
#define SAMPLES 4000
// Of each turn the thread runs for a quarter, then the handler for a quarter;
// then the CPU is idle.
#define QUARTER_NS (NSEC_PER_MSEC / 4)

static struct waitq readers = WAITQ_INIT(readers, "test");
static u64 turn_ns; // beginning of the current turn

static void busy_until(u64 ns)
{
    while (clock_now_ns() < ns)
        cpu_relax();
}

static void interrupts(struct callout *c UNUSED)
{
    busy_until(turn_ns + 2 * QUARTER_NS);
}

static void turn(struct callout *c)
{
    turn_ns = clock_now_ns();
    callout_set(c, turn_ns + QUARTER_NS);
    busy_until(turn_ns + QUARTER_NS);
    thread_sleep_until(turn_ns + 4 * QUARTER_NS, WAIT_UNINTERRUPTIBLE);
}

// False if the machine lacks the source; the test is then skipped.
static bool look(const char *source, struct sprofile_info *seen, u64 *irqs_off)
{
    if (source_lacks(source))
        return false;
    struct sprofile_options o = { .size = sizeof(o),
                                  .rate_hz = RATE_HZ,
                                  .flags = SPROFILE_O_RANDOM };
    struct stream *s;
    strlcpy(o.source, source, sizeof(o.source));
    if (!expect_begun(session_begin(NULL, &o, &readers, &s)))
        return false;
    struct task *own = s->profiler;
    s->profiler = NULL; // or the kernel task's samples are skipped
    struct cpu_set affinity = current->affinity;
    expect(!run_on(current, this_cpu()->id));
    const struct session *session = container_of(s, struct session, stream);
    const struct session_cpu *here = &session->cpu[this_cpu()->id];
    struct callout c;
    callout_init(&c, interrupts, CALLOUT_INTERRUPT);
    do {
        turn(&c);
        seen->irq = counter_read(&here->taken[MODE_IRQ]);
        seen->kernel = counter_read(&here->taken[MODE_KERNEL]);
        seen->idle = counter_read(&here->taken[MODE_IDLE]);
    } while (seen->irq + seen->kernel + seen->idle < SAMPLES);
    *irqs_off = counter_read(&here->irqs_off);
    callout_drain(&c);
    expect(!counter_read(&here->taken[MODE_USER]));
    s->profiler = own;
    session_end(s);
    thread_set_affinity(current, &affinity);
    log_printf("modes: %s: %u irq, %u kernel, %u idle, %u off\n", source,
               (u32)seen->irq, (u32)seen->kernel, (u32)seen->idle,
               (u32)*irqs_off);
    return true;
}

KERNEL_TEST(profile_tells_handlers_threads_and_idle_apart)
{
    struct sprofile_info seen;
    u64 irqs_off;
    if (!look("nmi-hpet", &seen, &irqs_off))
        return;
    expect(seen.irq && seen.kernel && seen.idle);
    expect(irqs_off >= seen.irq);
}

// A LAPIC tick stays pending until the handler returns: it samples the code
// that the handler interrupted.
KERNEL_TEST(profile_by_interrupts_sees_no_handler)
{
    struct sprofile_info seen;
    u64 irqs_off;
    if (look("lapic", &seen, &irqs_off))
        expect(!seen.irq && !irqs_off);
}
