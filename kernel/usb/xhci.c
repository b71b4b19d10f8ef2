// Events, commands and interrupts of an xHCI controller (xHCI 1.2, 4.6, 4.9.4,
// 4.17).
#include "kernel/usb/xhci.h"
#include "arch/clock.h"
#include "kernel/base/errno.h"
#include "kernel/base/errors.h"
#include "kernel/base/log.h"
#include "kernel/debug/fault.h"
#include "kernel/usb/registers.h"

#define COMMAND_MS 5000u // the longest, Address Device, has its own time-outs
#define POLL_NS (8 * NSEC_PER_MSEC)
#define EVENTS_MAX (4 * RING_TRBS) // taken at once

struct error_counter stray_events = { .name = "usb: unexpected events",
                                      .meaning = "ignored" };
LINKER_SET_ADD(error_counters, stray_events);

void xhci_give_up(struct xhci *x, const char *why)
{
    if (x->dead)
        return;
    log_printf("usb: controller %u is given up: %s\n", x->number, why);
    WRITE_ONCE(x->dead, true);
    xhci_stop(x);
}

static void command_event(struct xhci *x, const struct trb *e)
{
    if (!x->awaited || e->low != x->awaited || e->high) {
        error_count(&stray_events);
        return;
    }
    x->awaited = 0;
    x->answer_code = EVENT_CODE(e->status);
    x->answer_slot = TRB_SLOT_OF(e->control);
}

static void transfer_event(struct xhci *x, const struct trb *e)
{
    u32 slot = TRB_SLOT_OF(e->control);
    struct usb_device *d = slot <= XHCI_SLOTS_MAX ? x->devices[slot] : NULL;
    if (d)
        usb_transfer_event(d, TRB_ENDPOINT_OF(e->control), e);
    else
        error_count(&stray_events);
}

static void take_event(struct xhci *x, const struct trb *e)
{
    switch (TRB_TYPE_OF(e->control)) {
    case EVENT_TRANSFER:
        transfer_event(x, e);
        break;
    case EVENT_COMMAND:
        command_event(x, e);
        break;
    case EVENT_PORT:
        root_port_changed(x, e->low >> 24);
        break;
    default: // bandwidth, wake-ups, errors that the status shows as well
        break;
    }
}

static void check_status(struct xhci *x)
{
    u32 status = op_read(x, OP_STATUS);
    if (fault_begun(FAULT_USB_DEAD))
        status |= STATUS_HOST_ERROR;
    if (status == ~0u)
        xhci_give_up(x, "it has vanished");
    else if (status & STATUS_HOST_ERROR)
        xhci_give_up(x, "it reports a host system error");
    else if (status & STATUS_CONTROLLER_ERROR)
        xhci_give_up(x, "it reports an error of its own");
    else if (status & STATUS_HALTED)
        xhci_give_up(x, "it has halted");
}

// The dequeue pointer is written after the events are taken: the controller
// interrupts again if it has added others since.
void xhci_take_events(struct xhci *x)
{
    if (x->dead)
        return;
    u32 interrupts = READ_ONCE(x->interrupts);
    bool interrupted = interrupts != x->served;
    x->served = interrupts;
    check_status(x);
    struct trb e;
    u32 n = 0;
    while (!x->dead && n < EVENTS_MAX && events_take(&x->events, &e)) {
        if (!fault_due(FAULT_USB_EVENT))
            take_event(x, &e);
        n++;
    }
    if (x->dead || (!n && !interrupted))
        return;
    u32 at = (u32)virt_to_phys(&x->events.trbs[x->events.next]);
    reg_write(x, x->runtime + RUN_DEQUEUE, at | DEQUEUE_BUSY);
    reg_write(x, x->runtime + RUN_DEQUEUE + 4, 0);
}

bool xhci_has_events(const struct xhci *x)
{
    return READ_ONCE(x->interrupts) != x->served || events_pending(&x->events);
}

int xhci_wait(struct xhci *x, bool (*done)(void *arg), void *arg, u32 ms)
{
    u64 limit = clock_now_ns() + ms * NSEC_PER_MSEC;
    for (;;) {
        xhci_take_events(x);
        usb_call_timeouts(x);
        if (done(arg))
            return 0;
        if (x->dead)
            return -ENODEV;
        u64 now = clock_now_ns();
        if (now >= limit)
            return -ETIMEDOUT;
        u64 next = x->polled ? MIN(limit, now + POLL_NS) : limit;
        wait_event(&x->wake, xhci_has_events(x), WAIT_UNINTERRUPTIBLE,
                   MIN(next, usb_next_deadline(x)));
    }
}

static bool command_done(void *arg)
{
    return !((struct xhci *)arg)->awaited;
}

int xhci_command(struct xhci *x, const struct trb *t, u32 *code, u32 *slot)
{
    if (x->dead)
        return -ENODEV;
    assert(!x->awaited);
    x->awaited = ring_put(&x->commands, t);
    xhci_ring_doorbell(x, 0, 0);
    int err = xhci_wait(x, command_done, x, COMMAND_MS);
    if (err == -ETIMEDOUT)
        xhci_give_up(x, "a command does not end");
    if (err)
        return -ENODEV;
    if (code)
        *code = x->answer_code;
    if (slot)
        *slot = x->answer_slot;
    return x->answer_code == CODE_SUCCESS ? 0 : -EIO;
}
