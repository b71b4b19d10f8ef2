// The kernel's rings: /sensors/sched/switch.N has the context switches of CPU
// N, with its time in each record. CPU N is the ring's writer: the trace point
// is passed with interrupts off.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/sensor/kernel_sensor.h"
#include "lib/format.h"

#include "arch/cpu.h"

#define RECORD_SWITCH 1
#define TEXT                                                          \
    "context switches of one CPU: thread ids, and the state of what " \
    "left\n#type switch 1\nprev, u32\nnext, u32\nstate, u8\n"

static struct kernel_sensor rings[CPU_MAX];
_Static_assert(CPU_MAX <= 1000, "three digits in a path");
static char paths[CPU_MAX][sizeof("sched/switch.255")];

static void switched(const void *record)
{
    struct kernel_sensor *k = &rings[this_cpu()->id];
    if (kernel_sensor_opening(k))
        kernel_sensor_write(k, RECORD_SWITCH, record,
                            offsetof(struct trace_sched_switch, at));
}

// Shared by all: it listens while one of them is open.
static struct trace_listener listener = { .point = TRACE_sched_switch,
                                          .fn = switched };

void kernel_switches_init(void)
{
    for (u32 i = 0; i < smp_cpus_expected(); i++) {
        format(paths[i], sizeof(paths[i]), "sched/switch.%u", i);
        rings[i] = (struct kernel_sensor){
            .path = paths[i],
            .text = TEXT,
            .kind = KERNEL_SENSOR_RING,
            .listeners = &listener,
            .listener_count = 1,
        };
    }
}

struct kernel_sensor *kernel_switches_of(u32 cpu)
{
    return cpu < smp_cpus_expected() ? &rings[cpu] : NULL;
}
