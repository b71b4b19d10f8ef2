// Transfers of devices: requests to endpoint 0, the reports of interrupt
// endpoints, and bulk data (xHCI 1.2, 4.6.8 to 4.6.10, 4.11.2).
//
// An endpoint has one transfer at a time.
#include "arch/mmu.h"
#include "kernel/base/errno.h"
#include "kernel/base/errors.h"
#include "kernel/base/log.h"
#include "kernel/debug/fault.h"
#include "kernel/mm/frame.h"
#include "kernel/usb/registers.h"
#include "kernel/usb/xhci.h"
#include "lib/string.h"

#define REQUEST_MS 1000u
#define ERRORS_MAX 8u // in a row, of an interrupt endpoint
#define FEATURE_HALT 0
#define BULK_MAX 65536u // of a TRB, which must not cross a multiple (6.4.1)

ERROR_COUNTER(transfer_errors, "usb: failed transfers",
              "repeated, or given up");

static u32 buffer_address(const struct usb_device *d)
{
    return (u32)virt_to_phys(d->buffer);
}

static int endpoint_command(struct usb_device *d, u32 type, u32 index)
{
    struct trb t = { .control = TRB_TYPE(type) | TRB_SLOT(d->slot) |
                                TRB_ENDPOINT(index) };
    return xhci_command(d->controller, &t, NULL, NULL);
}

// Ends what an endpoint is doing, or the halt that an error has left, and
// empties its ring.
static int empty_endpoint(struct usb_device *d, struct usb_endpoint *e)
{
    enum endpoint_state s = output_endpoint_state(
        d->contexts, d->controller->context_bytes, e->index);
    int err = 0;
    if (s == ENDPOINT_HALTED)
        err = endpoint_command(d, TRB_RESET_ENDPOINT, e->index);
    else if (s == ENDPOINT_RUNNING)
        err = endpoint_command(d, TRB_STOP_ENDPOINT, e->index);
    e->awaited = 0;
    if (err)
        return err;
    ring_init(&e->ring, e->ring.trbs, e->ring.address);
    struct trb t = { .low = e->ring.address | TRB_CYCLE,
                     .control = TRB_TYPE(TRB_SET_DEQUEUE) | TRB_SLOT(d->slot) |
                                TRB_ENDPOINT(e->index) };
    return xhci_command(d->controller, &t, NULL, NULL);
}

// --- requests

static void put_request(struct usb_device *d, const struct usb_request *r)
{
    struct trb_ring *ring = &d->control.ring;
    bool in = r->type & REQUEST_IN;
    struct trb setup = {
        .low = r->type | (u32)r->request << 8 | (u32)r->value << 16,
        .high = r->index | (u32)r->length << 16,
        .status = sizeof(struct usb_request),
        .control = TRB_TYPE(TRB_SETUP) | TRB_IMMEDIATE |
                   (!r->length ? 0
                    : in       ? SETUP_IN
                               : SETUP_OUT),
    };
    struct trb data = { .low = buffer_address(d),
                        .status = r->length,
                        .control = TRB_TYPE(TRB_DATA) | (in ? TRB_IN : 0) };
    struct trb status = { .control = TRB_TYPE(TRB_STATUS) | TRB_INTERRUPT |
                                     (r->length && in ? 0 : TRB_IN) };
    ring_put(ring, &setup);
    if (r->length)
        ring_put(ring, &data);
    d->control.code = CODE_NONE;
    d->control.awaited = ring_put(ring, &status);
    xhci_ring_doorbell(d->controller, d->slot, CONTROL_ENDPOINT);
}

static bool request_done(void *arg)
{
    const struct usb_device *d = arg;
    return d->control.code != CODE_NONE || d->gone;
}

static int result_of(const struct usb_device *d, const struct usb_endpoint *e,
                     int err)
{
    if (!err && d->gone)
        return -ENODEV;
    if (err)
        return err;
    if (e->code == CODE_SUCCESS)
        return 0;
    return e->code == CODE_STALL ? -EPIPE : -EIO;
}

int usb_control(struct usb_device *d, const struct usb_request *r, void *data)
{
    bool in = r->type & REQUEST_IN;
    assert(r->length <= DEVICE_BUFFER_BYTES);
    if (d->gone || d->controller->dead)
        return -ENODEV;
    if (in)
        memset(d->buffer, 0, r->length);
    else if (r->length)
        memcpy(d->buffer, data, r->length);
    put_request(d, r);
    int err = xhci_wait(d->controller, request_done, d, REQUEST_MS);
    err = result_of(d, &d->control, err);
    if (err && err != -ENODEV) {
        error_count(&transfer_errors);
        if (empty_endpoint(d, &d->control))
            err = -ENODEV;
    }
    if (in && r->length)
        memcpy(data, d->buffer, r->length);
    if (in && r->length && fault_due(FAULT_USB_DATA))
        ((u8 *)data)[d->control.ring.next % r->length] ^= 0xff;
    return err;
}

// The bits of an endpoint's address are those of its index (4.5.1), rotated.
int usb_clear_halt(struct usb_device *d, struct usb_endpoint *e)
{
    struct usb_request clear = {
        .type = REQUEST_ENDPOINT,
        .request = CLEAR_FEATURE,
        .value = FEATURE_HALT,
        .index = (u16)(e->index / 2 | (e->index & 1 ? REQUEST_IN : 0)),
    };
    int err = empty_endpoint(d, e);
    return err ? err : usb_control(d, &clear, NULL);
}

static bool device_gone(void *arg)
{
    return ((struct usb_device *)arg)->gone;
}

int usb_pause(struct usb_device *d, u32 ms)
{
    int err = xhci_wait(d->controller, device_gone, d, ms);
    return err == -ETIMEDOUT ? 0 : -ENODEV;
}

// --- endpoints

// The controller needs the slot's context once more: a hub says there how many
// ports it has (4.6.6).
static int configure(struct usb_device *d, const struct endpoint_facts *facts,
                     u32 count)
{
    struct xhci *x = d->controller;
    u32 bytes = x->context_bytes, last = 0;
    memset(x->input, 0, CONTEXTS * bytes);
    input_add(x->input, 0);
    for (u32 i = 0; i < count; i++) {
        input_add(x->input, facts[i].index);
        input_endpoint(x->input, bytes, &facts[i]);
        last = MAX(last, facts[i].index);
    }
    input_slot(x->input, bytes, &d->place, last);
    struct trb t = { .low = (u32)virt_to_phys(x->input),
                     .control =
                         TRB_TYPE(TRB_CONFIGURE_ENDPOINT) | TRB_SLOT(d->slot) };
    return xhci_command(x, &t, NULL, NULL);
}

// --- bulk data

static bool make_ring(struct usb_endpoint *e)
{
    void *page = page_alloc(FRAME_BUFFER);
    if (page)
        ring_init(&e->ring, page, (u32)virt_to_phys(page));
    return page;
}

int usb_start_bulk(struct usb_device *d)
{
    if (!make_ring(&d->bulk_in) || !make_ring(&d->bulk_out))
        return -ENOMEM;
    struct endpoint_facts facts[] = {
        { .index = endpoint_index(d->function.endpoint),
          .bulk = true,
          .packet = d->function.packet,
          .ring = d->bulk_in.ring.address },
        { .index = endpoint_index_out(d->function.out),
          .bulk = true,
          .packet = d->function.out_packet,
          .ring = d->bulk_out.ring.address },
    };
    int err = configure(d, facts, ARRAY_SIZE(facts));
    if (err)
        return err;
    d->bulk_in.index = facts[0].index;
    d->bulk_out.index = facts[1].index;
    return 0;
}

struct bulk {
    const struct usb_device *device;
    const struct usb_endpoint *endpoint;
};

static bool bulk_done(void *arg)
{
    const struct bulk *b = arg;
    return b->endpoint->code != CODE_NONE || b->device->gone;
}

// After an error the controller must not use the memory any more. A stall is
// left to usb_clear_halt.
int usb_bulk(struct usb_device *d, struct usb_endpoint *e, u32 address,
             u32 bytes, u32 ms, u32 *done)
{
    struct trb t = { .low = address,
                     .status = bytes,
                     .control = TRB_TYPE(TRB_NORMAL) | TRB_INTERRUPT };
    struct bulk b = { d, e };
    *done = 0;
    assert(bytes && bytes <= BULK_MAX &&
           address / BULK_MAX == (address + bytes - 1) / BULK_MAX);
    if (d->gone || d->controller->dead)
        return -ENODEV;
    e->code = CODE_NONE;
    e->awaited = ring_put(&e->ring, &t);
    xhci_ring_doorbell(d->controller, d->slot, e->index);
    int err = xhci_wait(d->controller, bulk_done, &b, ms);
    err = result_of(d, e, err);
    if (!err)
        *done = bytes - MIN(bytes, e->residue);
    if (err)
        error_count(&transfer_errors);
    if (err && err != -EPIPE && empty_endpoint(d, e))
        err = -ENODEV;
    return err;
}

// --- reports

u8 *usb_report(struct usb_device *d)
{
    return d->buffer + DEVICE_BUFFER_BYTES;
}

u32 usb_report_address(const struct usb_device *d)
{
    return buffer_address(d) + DEVICE_BUFFER_BYTES;
}

static u32 report_length(const struct usb_device *d)
{
    return MIN((u32)d->function.packet, REPORT_BYTES_MAX);
}

static void put_report_request(struct usb_device *d)
{
    struct trb t = { .low = usb_report_address(d),
                     .status = report_length(d),
                     .control = TRB_TYPE(TRB_NORMAL) | TRB_INTERRUPT };
    d->interrupt.awaited = ring_put(&d->interrupt.ring, &t);
    xhci_ring_doorbell(d->controller, d->slot, d->interrupt.index);
}

int usb_start_reports(struct usb_device *d)
{
    u32 index = endpoint_index(d->function.endpoint);
    struct endpoint_facts facts = {
        .index = index,
        .packet = d->function.packet,
        .interval = usb_interval(d->place.speed, d->function.interval),
        .ring = d->interrupt.ring.address,
    };
    int err = configure(d, &facts, 1);
    if (err)
        return err;
    d->interrupt.index = index;
    put_report_request(d);
    return 0;
}

int usb_restart_reports(struct usb_device *d)
{
    if (d->errors > ERRORS_MAX) {
        log_printf("usb: %s: given up: %u errors in a row\n", d->path,
                   d->errors);
        return -EIO;
    }
    int err = usb_clear_halt(d, &d->interrupt);
    if (!err)
        put_report_request(d);
    return err;
}

static void take_report(struct usb_device *d, const struct trb *e)
{
    u8 report[REPORT_BYTES_MAX];
    u32 length = report_length(d), residue = EVENT_RESIDUE(e->status);
    u32 n = residue <= length ? length - residue : 0;
    memcpy(report, usb_report(d), n);
    d->errors = 0;
    put_report_request(d);
    if (d->driver)
        d->driver->report(d, report, n);
}

static void interrupt_event(struct usb_device *d, const struct trb *e)
{
    u32 code = EVENT_CODE(e->status);
    d->interrupt.awaited = 0;
    if (code == CODE_SUCCESS || code == CODE_SHORT) {
        take_report(d, e);
        return;
    }
    error_count(&transfer_errors);
    d->errors++;
    d->refill = true;
}

static struct usb_endpoint *bulk_endpoint(struct usb_device *d, u32 index)
{
    if (!index)
        return NULL;
    return index == d->bulk_in.index    ? &d->bulk_in
           : index == d->bulk_out.index ? &d->bulk_out
                                        : NULL;
}

static void bulk_event(struct usb_endpoint *e, const struct trb *event)
{
    u32 code = EVENT_CODE(event->status);
    e->awaited = 0;
    e->residue = EVENT_RESIDUE(event->status);
    e->code = code == CODE_SHORT ? CODE_SUCCESS
              : code             ? code
                                 : CODE_TRANSACTION;
}

static bool stopped(u32 code)
{
    return code >= CODE_STOPPED_FIRST && code <= CODE_STOPPED_LAST;
}

// An error may concern any TRB of a request, and ends it.
void usb_transfer_event(struct usb_device *d, u32 index, const struct trb *e)
{
    u32 code = EVENT_CODE(e->status);
    if (stopped(code))
        return;
    struct usb_endpoint *bulk = bulk_endpoint(d, index);
    bool of_interrupt = index == d->interrupt.index && index;
    if (of_interrupt && d->interrupt.awaited &&
        e->low == d->interrupt.awaited) {
        interrupt_event(d, e);
    } else if (index == CONTROL_ENDPOINT && d->control.awaited &&
               (e->low == d->control.awaited ||
                (code != CODE_SUCCESS && code != CODE_SHORT))) {
        d->control.awaited = 0;
        d->control.code = code ? code : CODE_TRANSACTION;
    } else if (bulk && bulk->awaited && e->low == bulk->awaited) {
        bulk_event(bulk, e);
    } else {
        error_count(&stray_events);
    }
}
