// The kernel's histograms of times: how long threads wait for a CPU,
// interrupts, system calls and page faults take, and how late timers are. All
// listen to trace points, which nobody passes while no task has the sensor
// open.
//
// An interval is measured by a stopwatch that its begin starts and its end
// reads. What began before the sensor was opened is not counted: the watch
// keeps the number of the opening.

#include "kernel/base/log.h"
#include "kernel/sched/thread.h"
#include "kernel/sensor/kernel_sensor.h"

#include "arch/clock.h"
#include "arch/cpu.h"
#include "lib/cpu_memory.h"

// Nested interrupts per CPU; deeper ones are not measured.
#define IRQ_DEPTH_MAX 8u

// A sensor with its listeners.
#define LISTENING(sensor, path_, text_, kind_, ...)                      \
    static struct trace_listener sensor##_listeners[] = { __VA_ARGS__ }; \
    static struct kernel_sensor sensor = {                               \
        .path = path_,                                                   \
        .text = text_,                                                   \
        .kind = kind_,                                                   \
        .listeners = sensor##_listeners,                                 \
        .listener_count = ARRAY_SIZE(sensor##_listeners),                \
    };                                                                   \
    KERNEL_SENSOR(sensor);

static void begin(struct stopwatch *w, const struct kernel_sensor *k, u32 what)
{
    w->opening = kernel_sensor_opening(k);
    w->what = what;
    w->began = rdtsc();
}

// False: it was not started during this opening. It is stopped.
static bool end(struct stopwatch *w, const struct kernel_sensor *k, u64 *ns)
{
    bool valid = w->opening == kernel_sensor_opening(k);
    u64 cycles = rdtsc() - w->began;
    w->opening = 0;
    // The TSCs of CPUs may differ: a negative time counts as 0.
    *ns = (s64)cycles > 0 ? clock_tsc_to_ns(cycles) : 0;
    return valid;
}

// --- waiting for a CPU ------------------------------------------------------

static struct kernel_sensor latency;

static void switched(const void *record UNUSED)
{
    struct thread *t = current;
    if (thread_is_idle(t))
        return;
    u64 cycles = rdtsc() - t->since; // when it became ready
    kernel_sensor_add(&latency, (s64)cycles > 0 ? clock_tsc_to_ns(cycles) : 0);
}

LISTENING(latency, "sched/latency",
          "time from ready to running, of each thread that gets a CPU",
          KERNEL_SENSOR_TIMES, { .point = TRACE_sched_switch, .fn = switched })

// --- interrupts -------------------------------------------------------------

static struct kernel_sensor interrupts;
static struct stopwatch *irq_watches[CPU_MAX];
CPU_MEMORY(irq_watches, IRQ_DEPTH_MAX);

static struct stopwatch *irq_watch(void)
{
    const struct cpu *c = this_cpu();
    u32 depth = c->irq_depth - 1;
    return depth < IRQ_DEPTH_MAX ? &irq_watches[c->id][depth] : NULL;
}

static void irq_entered(const void *record)
{
    const struct trace_irq_enter *r = record;
    struct stopwatch *w = irq_watch();
    if (w)
        begin(w, &interrupts, r->vector);
}

static void irq_left(const void *record UNUSED)
{
    struct stopwatch *w = irq_watch();
    u64 ns;
    if (w && end(w, &interrupts, &ns))
        kernel_sensor_add_for(&interrupts, w->what, ns);
}

LISTENING(interrupts, "irq/duration",
          "time in the handler, by vector; of those that interrupt it, too",
          KERNEL_SENSOR_TIMES_BY_VECTOR,
          { .point = TRACE_irq_enter, .fn = irq_entered },
          { .point = TRACE_irq_exit, .fn = irq_left })

// --- system calls -----------------------------------------------------------

static struct kernel_sensor calls;

static void call_entered(const void *record)
{
    const struct trace_syscall_enter *r = record;
    begin(&current->call_watch, &calls, r->call);
}

// The number is that of the entry: sigreturn changes the registers.
static void call_left(const void *record UNUSED)
{
    struct stopwatch *w = &current->call_watch;
    u64 ns;
    if (end(w, &calls, &ns))
        kernel_sensor_add_for(&calls, w->what, ns);
}

LISTENING(calls, "syscall/duration",
          "time from begin to end, waiting included, by number of the call",
          KERNEL_SENSOR_TIMES_BY_CALL,
          { .point = TRACE_syscall_enter, .fn = call_entered },
          { .point = TRACE_syscall_exit, .fn = call_left })

// --- page faults ------------------------------------------------------------

static struct kernel_sensor faults;

static void fault_begun(const void *record UNUSED)
{
    begin(&current->fault_watch, &faults, 0);
}

static void fault_ended(const void *record UNUSED)
{
    u64 ns;
    if (end(&current->fault_watch, &faults, &ns))
        kernel_sensor_add(&faults, ns);
}

LISTENING(faults, "mm/fault", "time to resolve a page fault, waiting included",
          KERNEL_SENSOR_TIMES, { .point = TRACE_page_fault, .fn = fault_begun },
          { .point = TRACE_page_fault_end, .fn = fault_ended })

// --- timers -----------------------------------------------------------------

static struct kernel_sensor lateness;

static void fired(const void *record)
{
    const struct trace_timer_fire *r = record;
    kernel_sensor_add(&lateness, r->late);
}

LISTENING(lateness, "time/lateness",
          "time from a callout's deadline to its call", KERNEL_SENSOR_TIMES,
          { .point = TRACE_timer_fire, .fn = fired })
