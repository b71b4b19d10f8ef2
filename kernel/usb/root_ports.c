// The controller's own ports (xHCI 1.2, 4.19 and 5.4.8).
#include "kernel/base/log.h"
#include "kernel/usb/registers.h"
#include "kernel/usb/xhci.h"

#define POWER_MS 20u    // 4.19.4
#define STABLE_MS 100u  // USB 2.0, 7.1.7.3
#define RESET_MS 500u   // a reset takes 50 ms
#define RECOVERY_MS 10u // USB 2.0, 7.1.7.5
#define ATTEMPTS_MAX 3u // to start a device, until it is unplugged

static u32 port_register(u32 port)
{
    return OP_PORTS + (port - 1) * 16;
}

// Writing a port's register back would disable the port and clear its changes.
static void port_write(struct xhci *x, u32 port, u32 bits)
{
    u32 reg = port_register(port);
    op_write(x, reg, (op_read(x, reg) & PORT_KEEP) | bits);
}

static u32 port_read(const struct xhci *x, u32 port)
{
    return op_read(x, port_register(port));
}

static void mark(struct xhci *x, u32 port)
{
    x->changed[port / 32] |= 1u << port % 32;
}

void root_port_changed(struct xhci *x, u32 port)
{
    if (!port || port > x->ports) {
        error_count(&stray_events);
        return;
    }
    mark(x, port);
    u32 status = port_read(x, port);
    if (status & PORT_CONNECTED && !(status & PORT_CONNECT_CHANGE))
        return;
    for (u32 slot = 1; slot <= x->slots; slot++) {
        struct usb_device *d = x->devices[slot];
        if (d && d->place.root_port == port)
            d->gone = true;
    }
}

static bool never(void *arg UNUSED)
{
    return false;
}

static void pause(struct xhci *x, u32 ms)
{
    xhci_wait(x, never, NULL, ms);
}

struct awaited_port {
    const struct xhci *x;
    u32 port;
};

static bool reset_done(void *arg)
{
    const struct awaited_port *a = arg;
    u32 status = port_read(a->x, a->port);
    return !(status & PORT_RESET) && status & (PORT_ENABLED | PORT_CHANGES);
}

// A port of USB 3 enables itself; one of USB 2 by a reset. A device that did
// not start is reset as well: it may have an address already.
static bool enable(struct xhci *x, u32 port)
{
    if (port_read(x, port) & PORT_ENABLED && !x->failures[port])
        return true;
    port_write(x, port, PORT_RESET);
    struct awaited_port a = { x, port };
    if (xhci_wait(x, reset_done, &a, RESET_MS))
        return false;
    pause(x, RECOVERY_MS);
    return port_read(x, port) & PORT_ENABLED;
}

static void connect(struct xhci *x, u32 port)
{
    pause(x, STABLE_MS);
    if (x->dead || !(port_read(x, port) & PORT_CONNECTED))
        return;
    port_write(x, port, PORT_CHANGES);
    bool enabled = enable(x, port);
    if (x->dead)
        return;
    port_write(x, port, PORT_CHANGES);
    enum usb_speed speed = PORT_SPEED(port_read(x, port));
    if (enabled && speed >= USB_FULL && speed <= USB_SUPER_PLUS)
        x->roots[port] = usb_attach(x, NULL, (u8)port, speed);
    else
        log_printf("usb: %u-%u: the port cannot be enabled\n", x->number, port);
    if (x->roots[port] || x->dead)
        return;
    if (++x->failures[port] < ATTEMPTS_MAX)
        mark(x, port);
}

static void serve_port(struct xhci *x, u32 port)
{
    u32 status = port_read(x, port);
    bool connected = status & PORT_CONNECTED;
    bool changed = status & PORT_CONNECT_CHANGE;
    port_write(x, port, status & PORT_CHANGES);
    struct usb_device *d = x->roots[port];
    if (d && (d->gone || !connected || changed)) {
        log_printf("usb: %s: unplugged\n", d->path);
        x->roots[port] = NULL;
        usb_detach(d);
    }
    if (!connected || changed)
        x->failures[port] = 0;
    if (connected && !x->roots[port] && x->failures[port] < ATTEMPTS_MAX)
        connect(x, port);
}

void root_ports_serve(struct xhci *x)
{
    for (u32 port = 1; port <= x->ports && !x->dead; port++) {
        u32 bit = 1u << port % 32;
        if (!(x->changed[port / 32] & bit))
            continue;
        x->changed[port / 32] &= ~bit;
        serve_port(x, port);
    }
}

void root_ports_start(struct xhci *x)
{
    for (u32 port = 1; port <= x->ports; port++) {
        if (x->port_power && !(port_read(x, port) & PORT_POWER))
            port_write(x, port, PORT_POWER);
    }
    pause(x, POWER_MS);
    for (u32 port = 1; port <= x->ports; port++)
        mark(x, port);
}
