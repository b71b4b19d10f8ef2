#ifdef CHECKED

#include "kernel/debug/fault.h"

#include "kernel/base/cmdline.h"
#include "kernel/base/errors.h"
#include "kernel/base/log.h"
#include "lib/string.h"

#define KINDS                                                             \
    "ipi, nmi, event-lost, event-double, timer-lost, timer-double, "      \
    "timer-stops, usb-data, usb-event, usb-status, usb-dead, ahci-lost, " \
    "ahci-fatal, ahci-gone"
KERNEL_ARG(fault,
           "fault=KIND,N[,KIND,N...]: every Nth event fails; KIND: " KINDS);

static const char *const names[FAULTS] = {
    [FAULT_IPI] = "ipi",
    [FAULT_NMI] = "nmi",
    [FAULT_EVENT_LOST] = "event-lost",
    [FAULT_EVENT_DOUBLE] = "event-double",
    [FAULT_TIMER_LOST] = "timer-lost",
    [FAULT_TIMER_DOUBLE] = "timer-double",
    [FAULT_TIMER_STOPS] = "timer-stops",
    [FAULT_TIMERS_STOP] = "timers-stop",
    [FAULT_USB_DATA] = "usb-data",
    [FAULT_USB_EVENT] = "usb-event",
    [FAULT_USB_STATUS] = "usb-status",
    [FAULT_USB_DEAD] = "usb-dead",
    [FAULT_AHCI_LOST] = "ahci-lost",
    [FAULT_AHCI_FATAL] = "ahci-fatal",
    [FAULT_AHCI_GONE] = "ahci-gone",
};

u32 fault_every[FAULTS];
static u32 events[FAULTS]; // atomic
ERROR_COUNTER(made, "faults made", "fault= asks for them");

// The length up to a comma or the end of the text.
static size_t part(const char *text)
{
    const char *comma = strchr(text, ',');
    return comma ? (size_t)(comma - text) : strlen(text);
}

static u32 kind_of(const char *text, size_t length)
{
    u32 kind = 0;
    while (kind < FAULTS && (strlen(names[kind]) != length ||
                             strncmp(names[kind], text, length) != 0))
        kind++;
    return kind;
}

static const char *number(const char *text, u32 *out)
{
    for (*out = 0; *text >= '0' && *text <= '9' && *out < 100000000; text++)
        *out = *out * 10 + (u32)(*text - '0');
    return text;
}

void fault_start(void)
{
    for (const char *at = arg_fault.value; *at;) {
        size_t length = part(at);
        u32 kind = kind_of(at, length), n = 0;
        at += length;
        if (*at == ',')
            at = number(at + 1, &n);
        if (kind == FAULTS || !n || (*at && *at != ','))
            panic("fault=%s: invalid, use KIND,N[,KIND,N...] with KIND one "
                  "of " KINDS,
                  arg_fault.value);
        fault_every[kind] = n;
        at += *at == ',';
    }
}

bool fault_count_down(enum fault kind)
{
    u32 n = __atomic_add_fetch(&events[kind], 1, __ATOMIC_RELAXED);
    if (n % fault_every[kind])
        return false;
    error_count(&made);
    return true;
}

bool fault_count_from(enum fault kind)
{
    u32 n = __atomic_add_fetch(&events[kind], 1, __ATOMIC_RELAXED);
    if (n < fault_every[kind])
        return false;
    error_count(&made);
    return true;
}

#endif
