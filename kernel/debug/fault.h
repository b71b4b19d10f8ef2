// Fault injection (checked kernels only): the kernel argument
// fault=KIND,N[,KIND,N...] makes every Nth event of KIND fail, to test how the
// kernel handles that.
#pragma once

#include "lib/types.h"

enum fault {
    FAULT_IPI,          // ipi: an IPI is not sent
    FAULT_NMI,          // nmi: an NMI to another CPU is not sent
    FAULT_EVENT_LOST,   // event-lost: a clock event is not handled
    FAULT_EVENT_DOUBLE, // event-double: it is handled twice
    FAULT_TIMER_LOST,   // timer-lost: the same for other timers' interrupts
    FAULT_TIMER_DOUBLE, // timer-double
    FAULT_TIMER_STOPS,  // timer-stops: CPU 0's own, after N shots
    FAULT_TIMERS_STOP,  // timers-stop: all CPUs' own, after N shots of all
    FAULT_USB_DATA,     // usb-data: a device's answer has a wrong byte
    FAULT_USB_EVENT,    // usb-event: an event of the controller is lost
    FAULT_USB_STATUS,   // usb-status: a stick's status has a wrong byte
    FAULT_USB_DEAD,     // usb-dead: the controller fails, from then on
    FAULT_AHCI_LOST,    // ahci-lost: a command is not issued
    FAULT_AHCI_FATAL,   // ahci-fatal: a transfer ends with a fatal error
    FAULT_AHCI_GONE,    // ahci-gone: no device is seen, from then on
    FAULTS
};

#ifdef CHECKED

extern u32 fault_every[FAULTS]; // N; 0: never. Constant after fault_start.

void fault_start(void); // once the kernel arguments are parsed
bool fault_count_down(enum fault kind);
bool fault_count_from(enum fault kind);

// True: this event must fail. Any context.
static ALWAYS_INLINE bool fault_due(enum fault kind)
{
    return unlikely(fault_every[kind]) && fault_count_down(kind);
}

// True from the Nth event on. Any context.
static ALWAYS_INLINE bool fault_begun(enum fault kind)
{
    return unlikely(fault_every[kind]) && fault_count_from(kind);
}

#else

static inline void fault_start(void)
{
}
static ALWAYS_INLINE bool fault_due(enum fault kind UNUSED)
{
    return false;
}
static ALWAYS_INLINE bool fault_begun(enum fault kind UNUSED)
{
    return false;
}

#endif
