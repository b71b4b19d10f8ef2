// Interrupts: controllers, vectors, inter-processor interrupts.
//
// Vectors: 0-31 exceptions, 0x30-0xdf devices (0x80: system calls), 0xe0-0xff
// LAPIC and IPIs. Handlers run with interrupts off on the interrupted thread's
// stack; cpu->irq_frame is what they interrupted.
#pragma once

#include "arch/cpu.h"
#include "lib/counter.h"
#include "lib/types.h"

struct trapframe;

#define VECTORS 256
#define VECTOR_DEVICE_FIRST 0x30
#define VECTOR_TIMER 0xe0
#define VECTOR_RESCHEDULE 0xe1
#define VECTOR_CALL 0xe2
#define VECTOR_FORWARDED 0xe3 // timer interrupt that another CPU received
#define VECTOR_DEFERRED 0xe4  // deferred work of an NMI
#define VECTOR_THERMAL 0xe5   // this CPU throttles itself
#define VECTOR_SPURIOUS 0xff

typedef void (*irq_handler_t)(void *arg);

// Connects an ISA interrupt line (0-15; ACPI's overrides are applied), unmasks
// it and directs it to the boot CPU. `name` is shown in /proc/interrupts. 0,
// -EBUSY, -EINVAL. Does not sleep; any time after arch_init_devices.
int irq_register_isa(u32 irq, irq_handler_t handler, void *arg,
                     const char *name);

// Requests a call of irq_deferred on this CPU, in interrupt context, at the end
// of the next interrupt. Interrupts off, NMI included. (Without a local APIC
// there are no NMIs to call it, and the interrupt is the current one.)
void irq_raise_deferred(void);
UPCALL void irq_deferred(void);

// Dispatches a vector >= 0x20, and acknowledges it; called by the trap code.
void irq_dispatch(u32 vector);

// Each row is written by its own CPU, which reaches it through struct cpu.
extern struct counter *irq_counts[CPU_MAX];
// Counts one interrupt; exceptions are vectors 0 to 31. Interrupts off.
static ALWAYS_INLINE void irq_count_up(u32 vector)
{
    struct counter *c = this_cpu_read(irq_counts) + vector;
    counter_add(__builtin_constant_p(vector) ? c : OPAQUE(c), 1);
}
// Number of interrupts of `vector` on `cpu`, and its name ("" if unused).
u64 irq_count(u32 cpu, u32 vector);
const char *irq_name(u32 vector);
// "IO-APIC", "LAPIC", "XT-PIC", "exception".
const char *irq_controller(u32 vector);
