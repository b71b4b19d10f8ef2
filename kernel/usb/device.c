// A USB device from its appearance to its end (xHCI 1.2, 4.3; USB 2.0, 9.1).
#include "arch/mmu.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/usb/registers.h"
#include "kernel/usb/usb_list.h"
#include "kernel/usb/xhci.h"
#include "lib/format.h"
#include "lib/string.h"

#define HUBS_MAX 5u // between a device and the root port

static const char *speed_name(enum usb_speed speed)
{
    static const char *const names[] = { "full", "low", "high", "super",
                                         "super+" };
    return speed - 1 < ARRAY_SIZE(names) ? names[speed - 1] : "unknown";
}

static const char *kind_name(const struct usb_device *d)
{
    if (d->driver)
        return d->driver->name;
    return d->function.kind == USB_HUB ? "hub, not used" : "not used";
}

void usb_describe(const struct usb_device *d, struct sysinfo_usb *out)
{
    strlcpy(out->path, d->path, sizeof(out->path));
    strlcpy(out->kind, kind_name(d), sizeof(out->kind));
    strlcpy(out->speed, speed_name(d->place.speed), sizeof(out->speed));
    format(out->id, sizeof(out->id), "%04x:%04x", d->vendor, d->product);
    out->controller = d->controller->number;
    out->slot = d->slot;
}

// --- memory

static bool allocate(struct usb_device *d)
{
    void *control = page_alloc(FRAME_BUFFER);
    void *interrupt = page_alloc(FRAME_BUFFER);
    d->contexts = page_alloc(FRAME_BUFFER);
    d->buffer = page_alloc(FRAME_BUFFER);
    d->control.ring.trbs = control;
    d->interrupt.ring.trbs = interrupt;
    if (!control || !interrupt || !d->contexts || !d->buffer)
        return false;
    ring_init(&d->control.ring, control, (u32)virt_to_phys(control));
    ring_init(&d->interrupt.ring, interrupt, (u32)virt_to_phys(interrupt));
    return true;
}

static void free_page(void *page)
{
    if (page)
        page_free(page);
}

static void release(struct usb_device *d)
{
    if (d->driver && d->driver->release)
        d->driver->release(d);
    free_page(d->control.ring.trbs);
    free_page(d->interrupt.ring.trbs);
    free_page(d->bulk_in.ring.trbs);
    free_page(d->bulk_out.ring.trbs);
    free_page(d->contexts);
    free_page(d->buffer);
    kfree(d);
}

// --- addressing

static const char *get_slot(struct usb_device *d)
{
    struct xhci *x = d->controller;
    struct trb t = { .control = TRB_TYPE(TRB_ENABLE_SLOT) };
    u32 slot = 0;
    if (xhci_command(x, &t, NULL, &slot))
        return "the controller has no slot for it";
    if (!slot || slot > x->slots || x->devices[slot]) {
        xhci_give_up(x, "it assigns slots that it does not have");
        return "the controller has failed";
    }
    d->slot = (u8)slot;
    x->device_contexts[2 * slot] = (u32)virt_to_phys(d->contexts);
    usb_list_take_slot(d);
    return NULL;
}

static u32 first_packet(enum usb_speed speed)
{
    switch (speed) {
    case USB_FULL:
    case USB_LOW:
        return 8;
    case USB_HIGH:
        return 64;
    default:
        return 512;
    }
}

// Address Device sends SET_ADDRESS; Evaluate Context corrects the packet size.
static int set_control_endpoint(struct usb_device *d, u32 command, u32 packet)
{
    struct xhci *x = d->controller;
    u32 bytes = x->context_bytes;
    memset(x->input, 0, CONTEXTS * bytes);
    if (command == TRB_ADDRESS_DEVICE) {
        input_add(x->input, 0);
        input_slot(x->input, bytes, &d->place, CONTROL_ENDPOINT);
    }
    input_add(x->input, CONTROL_ENDPOINT);
    input_endpoint(x->input, bytes,
                   &(struct endpoint_facts){ .index = CONTROL_ENDPOINT,
                                             .packet = packet,
                                             .ring = d->control.ring.address });
    struct trb t = { .low = (u32)virt_to_phys(x->input),
                     .control = TRB_TYPE(command) | TRB_SLOT(d->slot) };
    return xhci_command(x, &t, NULL, NULL);
}

static int get_descriptor(struct usb_device *d, u32 type, void *data, u32 n)
{
    struct usb_request r = { .type = REQUEST_IN,
                             .request = GET_DESCRIPTOR,
                             .value = (u16)(type << 8),
                             .length = (u16)n };
    return usb_control(d, &r, data);
}

static const char *identify(struct usb_device *d)
{
    u8 device[USB_DEVICE_BYTES] = { 0 };
    u32 guess = first_packet(d->place.speed);
    if (get_descriptor(d, USB_DESCRIPTOR_DEVICE, device, 8))
        return "it does not describe itself";
    u32 packet = usb_control_packet(device, 8, d->place.speed);
    if (!packet)
        return "its device descriptor is broken";
    d->control.index = CONTROL_ENDPOINT;
    if (packet != guess &&
        set_control_endpoint(d, TRB_EVALUATE_CONTEXT, packet))
        return "its packet size is refused";
    struct usb_identity id;
    if (get_descriptor(d, USB_DESCRIPTOR_DEVICE, device, sizeof(device)) ||
        !usb_parse_device(device, sizeof(device), &id))
        return "its device descriptor is broken";
    d->vendor = id.vendor;
    d->product = id.product;
    return NULL;
}

// A configuration that is longer than the buffer is read as far as that goes,
// and is then taken for broken.
static const char *read_configuration(struct usb_device *d)
{
    u8 *data = kmalloc(DEVICE_BUFFER_BYTES);
    if (!data)
        return "no memory is left";
    u32 type = USB_DESCRIPTOR_CONFIGURATION, length = 0;
    if (!get_descriptor(d, type, data, USB_CONFIGURATION_BYTES))
        length = usb_configuration_length(data, USB_CONFIGURATION_BYTES);
    length = MIN(length, DEVICE_BUFFER_BYTES);
    bool right =
        length && !get_descriptor(d, type, data, length) &&
        usb_parse_configuration(data, length, d->place.speed, &d->function);
    kfree(data);
    return right ? NULL : "its configuration descriptor is broken";
}

// The half of a USB 3 hub for SuperSpeed has no keyboards behind it.
static const struct usb_driver *driver_for(const struct usb_device *d)
{
    if (d->function.kind == USB_KEYBOARD)
        return &usb_keyboard;
    if (d->function.kind == USB_HUB && d->place.speed < USB_SUPER &&
        d->depth < HUBS_MAX)
        return &usb_hub;
    if (d->function.kind == USB_STORAGE)
        return &usb_storage;
    return NULL;
}

static const char *start_function(struct usb_device *d)
{
    const struct usb_driver *driver = driver_for(d);
    if (!driver)
        return NULL;
    struct usb_request r = { .request = SET_CONFIGURATION,
                             .value = d->function.configuration };
    if (usb_control(d, &r, NULL))
        return "it refuses its configuration";
    d->driver = driver;
    if (driver->start(d))
        return "it does not start";
    return NULL;
}

static const char *start(struct usb_device *d)
{
    const char *why = get_slot(d);
    if (why)
        return why;
    if (set_control_endpoint(d, TRB_ADDRESS_DEVICE,
                             first_packet(d->place.speed)))
        return "it takes no address";
    why = identify(d);
    if (!why)
        why = read_configuration(d);
    return why ? why : start_function(d);
}

static void place(struct usb_device *d)
{
    const struct usb_device *hub = d->hub;
    if (hub) {
        d->depth = hub->depth + 1;
        place_behind_hub(&d->place, &hub->place, hub->slot, hub->depth,
                         d->port);
        format(d->path, sizeof(d->path), "%s.%u", hub->path, d->port);
    } else {
        d->place.root_port = d->port;
        format(d->path, sizeof(d->path), "%u-%u", d->controller->number,
               d->port);
    }
}

struct usb_device *usb_attach(struct xhci *x, struct usb_device *hub, u8 port,
                              enum usb_speed speed)
{
    struct usb_device *d = kzalloc(sizeof(*d));
    if (!d)
        return NULL;
    d->controller = x;
    d->hub = hub;
    d->port = port;
    d->place.speed = speed;
    d->deadline = WAIT_FOREVER;
    place(d);
    const char *why = allocate(d) ? start(d) : "no memory is left";
    if (!why) {
        log_printf("usb: %s: %04x:%04x, %s speed, %s\n", d->path, d->vendor,
                   d->product, speed_name(speed), kind_name(d));
        usb_list_add(d);
        return d;
    }
    if (!d->gone)
        log_printf("usb: %s: no device that can be used: %s\n", d->path, why);
    usb_detach(d);
    return NULL;
}

// --- the end

// The controller must not use the device's memory any more when that is freed.
static void give_slot_back(struct usb_device *d)
{
    struct xhci *x = d->controller;
    struct trb t = { .control =
                         TRB_TYPE(TRB_DISABLE_SLOT) | TRB_SLOT(d->slot) };
    if (xhci_command(x, &t, NULL, NULL))
        xhci_give_up(x, "it does not release a slot");
    x->device_contexts[2 * d->slot] = 0;
}

void usb_detach(struct usb_device *d)
{
    d->gone = true;
    if (d->driver)
        d->driver->stop(d);
    if (d->slot) {
        give_slot_back(d);
        usb_list_remove(d);
    }
    release(d);
}

bool usb_has_work(const struct usb_device *d)
{
    const struct usb_driver *driver = d->driver;
    return d->work || (driver && driver->wanted && driver->wanted(d));
}

void usb_serve(struct usb_device *d)
{
    if (d->refill) {
        d->refill = false;
        usb_restart_reports(d);
    }
    if (usb_has_work(d)) {
        d->work = false;
        if (d->driver)
            d->driver->work(d);
    }
}
