// Hubs (USB 2.0, chapter 11). A hub reports the ports that have changed by its
// interrupt endpoint; each is then asked for its state.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/usb/usb.h"

enum { // features of ports, table 11-17
    PORT_FEATURE_RESET = 4,
    PORT_FEATURE_POWER = 8,
    PORT_FEATURE_CHANGE = 16, // the first of 5: connection, enable, ...
};
#define CHANGES 5u

// State, table 11-21; changes have the same bits, 16 above.
#define PORT_CONNECTED (1u << 0)
#define PORT_ENABLED (1u << 1)
#define PORT_RESETTING (1u << 4)
#define PORT_LOW_SPEED (1u << 9)
#define PORT_HIGH_SPEED (1u << 10)
#define PORT_CONNECT_CHANGE (1u << 16)
#define PORT_ENABLE_CHANGE (1u << 17)

#define STABLE_MS 100u
#define RESET_STEP_MS 10u
#define RESET_STEPS 50u
#define RECOVERY_MS 10u
#define ATTEMPTS_MAX 3u

struct hub {
    u32 ports;
    u32 changed; // as bits, from 1
    struct usb_device *children[USB_PORTS_MAX + 1];
    u8 failures[USB_PORTS_MAX + 1];
};

static int port_feature(struct usb_device *d, u8 request, u32 feature, u32 port)
{
    struct usb_request r = {
        .type = REQUEST_CLASS | REQUEST_OTHER,
        .request = request,
        .value = (u16)feature,
        .index = (u16)port,
    };
    return usb_control(d, &r, NULL);
}

static int port_status(struct usb_device *d, u32 port, u32 *status)
{
    u8 s[4];
    struct usb_request r = {
        .type = REQUEST_IN | REQUEST_CLASS | REQUEST_OTHER,
        .request = GET_STATUS,
        .index = (u16)port,
        .length = sizeof(s),
    };
    int err = usb_control(d, &r, s);
    *status = s[0] | (u32)s[1] << 8 | (u32)s[2] << 16 | (u32)s[3] << 24;
    return err;
}

// --- the hub

static int read_facts(struct usb_device *d, struct usb_hub_facts *facts)
{
    u8 data[USB_HUB_BYTES];
    struct usb_request r = {
        .type = REQUEST_IN | REQUEST_CLASS,
        .request = GET_DESCRIPTOR,
        .value = USB_DESCRIPTOR_HUB << 8,
        .length = sizeof(data),
    };
    int err = usb_control(d, &r, data);
    if (!err && !usb_parse_hub(data, sizeof(data), facts))
        err = -EINVAL;
    return err;
}

static int start(struct usb_device *d)
{
    struct usb_hub_facts facts;
    int err = read_facts(d, &facts);
    struct hub *h = err ? NULL : kzalloc(sizeof(*h));
    if (!h)
        return err ? err : -ENOMEM;
    d->data = h;
    h->ports = facts.ports;
    d->place.hub_ports = facts.ports;
    d->place.think_time = facts.think_time;
    err = usb_start_reports(d);
    for (u32 port = 1; port <= h->ports && !err; port++)
        err = port_feature(d, SET_FEATURE, PORT_FEATURE_POWER, port);
    if (!err)
        err = usb_pause(d, facts.power_ms);
    h->changed = (2u << h->ports) - 2;
    d->work = true;
    return err;
}

static void report(struct usb_device *d, const u8 *data, size_t n)
{
    struct hub *h = d->data;
    u32 bits = n > 0 ? data[0] : 0;
    if (n > 1)
        bits |= (u32)data[1] << 8;
    h->changed |= bits & ((2u << h->ports) - 2);
    d->work |= h->changed != 0;
}

static void detach_child(struct hub *h, u32 port)
{
    struct usb_device *child = h->children[port];
    h->children[port] = NULL;
    if (child)
        usb_detach(child);
}

static void stop(struct usb_device *d)
{
    struct hub *h = d->data;
    for (u32 port = 1; h && port <= h->ports; port++)
        detach_child(h, port);
    kfree(h);
    d->data = NULL;
}

// --- its ports

// 0 once the reset has ended and the port is enabled.
static int reset(struct usb_device *d, u32 port, u32 *status)
{
    int err = port_feature(d, SET_FEATURE, PORT_FEATURE_RESET, port);
    for (u32 i = 0; i < RESET_STEPS && !err; i++) {
        err = usb_pause(d, RESET_STEP_MS);
        if (!err)
            err = port_status(d, port, status);
        if (err || (!(*status & PORT_RESETTING) && *status & PORT_ENABLED))
            break;
    }
    if (!err && !(*status & PORT_ENABLED))
        err = -EIO;
    return err ? err : usb_pause(d, RECOVERY_MS);
}

static void clear_changes(struct usb_device *d, u32 port, u32 status)
{
    for (u32 i = 0; i < CHANGES; i++) {
        if (status & PORT_CONNECT_CHANGE << i)
            port_feature(d, CLEAR_FEATURE, PORT_FEATURE_CHANGE + i, port);
    }
}

static enum usb_speed speed_of(u32 status)
{
    if (status & PORT_LOW_SPEED)
        return USB_LOW;
    return status & PORT_HIGH_SPEED ? USB_HIGH : USB_FULL;
}

static void connect(struct usb_device *d, u32 port)
{
    struct hub *h = d->data;
    u32 status;
    if (usb_pause(d, STABLE_MS) || port_status(d, port, &status) ||
        !(status & PORT_CONNECTED))
        return;
    int err = reset(d, port, &status);
    clear_changes(d, port, status);
    if (!err)
        h->children[port] =
            usb_attach(d->controller, d, (u8)port, speed_of(status));
    else if (!d->gone)
        log_printf("usb: %s.%u: the port cannot be enabled\n", d->path, port);
    if (h->children[port] || d->gone || ++h->failures[port] >= ATTEMPTS_MAX)
        return;
    h->changed |= 1u << port;
    d->work = true;
}

static void serve_port(struct usb_device *d, u32 port)
{
    struct hub *h = d->data;
    u32 status;
    if (port_status(d, port, &status))
        return;
    clear_changes(d, port, status);
    bool connected = status & PORT_CONNECTED;
    bool changed = status & PORT_CONNECT_CHANGE;
    bool lost = !connected || changed || !(status & PORT_ENABLED);
    if (h->children[port] && lost) {
        log_printf("usb: %s: unplugged\n", h->children[port]->path);
        detach_child(h, port);
    }
    if (!connected || changed)
        h->failures[port] = 0;
    if (connected && !h->children[port] && h->failures[port] < ATTEMPTS_MAX)
        connect(d, port);
}

static void serve(struct usb_device *d)
{
    struct hub *h = d->data;
    u32 changed = h->changed;
    h->changed = 0;
    for (u32 port = 1; port <= h->ports && !d->gone; port++) {
        if (changed & 1u << port)
            serve_port(d, port);
    }
}

const struct usb_driver usb_hub = {
    .name = "hub",
    .start = start,
    .report = report,
    .work = serve,
    .stop = stop,
};
