// The controllers' threads; see usb.h.
#include "arch/clock.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/providers.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/mutex.h"
#include "kernel/usb/registers.h"
#include "kernel/usb/usb_list.h"
#include "kernel/usb/xhci.h"
#include "lib/format.h"
#include "lib/string.h"

#define CLASS_XHCI 0x0c0330u
#define CONTROLLERS_MAX 8u
#define TEST_MS 100u // until an interrupt of the first command arrives
#define POLL_NS (8 * NSEC_PER_MSEC)
// A controller that fails while it is idle does not interrupt.
#define CHECK_NS (5 * NSEC_PER_SEC)

static struct mutex usb_lock = MUTEX_INIT(usb_lock, "usb devices");
static struct xhci *controllers[CONTROLLERS_MAX];
static u32 controller_count;

// --- the list of devices

void usb_list_take_slot(struct usb_device *d)
{
    mutex_lock(&usb_lock);
    d->controller->devices[d->slot] = d;
    mutex_unlock(&usb_lock);
}

void usb_list_add(struct usb_device *d)
{
    mutex_lock(&usb_lock);
    d->listed = true;
    mutex_unlock(&usb_lock);
}

void usb_list_remove(struct usb_device *d)
{
    mutex_lock(&usb_lock);
    d->controller->devices[d->slot] = NULL;
    mutex_unlock(&usb_lock);
}

void usb_devices_each(void (*fn)(const struct sysinfo_usb *, void *), void *arg)
{
    mutex_lock(&usb_lock);
    for (u32 i = 0; i < controller_count; i++) {
        for (u32 slot = 1; slot <= XHCI_SLOTS_MAX; slot++) {
            const struct usb_device *d = controllers[i]->devices[slot];
            struct sysinfo_usb record = { 0 };
            if (!d || !d->listed)
                continue;
            usb_describe(d, &record);
            fn(&record, arg);
        }
    }
    mutex_unlock(&usb_lock);
}

// --- a controller's thread

void usb_call_timeouts(struct xhci *x)
{
    u64 now = clock_now_ns();
    for (u32 slot = 1; slot <= x->slots; slot++) {
        struct usb_device *d = x->devices[slot];
        if (d && d->deadline <= now)
            d->driver->timeout(d);
    }
}

u64 usb_next_deadline(const struct xhci *x)
{
    u64 next = WAIT_FOREVER;
    for (u32 slot = 1; slot <= x->slots; slot++) {
        if (x->devices[slot])
            next = MIN(next, x->devices[slot]->deadline);
    }
    return next;
}

static bool has_work(const struct xhci *x)
{
    bool any = xhci_has_events(x);
    for (u32 i = 0; i < ARRAY_SIZE(x->changed); i++)
        any |= x->changed[i] != 0;
    for (u32 slot = 1; slot <= x->slots; slot++) {
        const struct usb_device *d = x->devices[slot];
        any |= d && (d->refill || usb_has_work(d));
    }
    return any;
}

static void serve(struct xhci *x)
{
    u64 period = x->polled ? POLL_NS : CHECK_NS;
    while (!x->dead) {
        u64 next = MIN(usb_next_deadline(x), clock_now_ns() + period);
        wait_event(&x->wake, has_work(x), WAIT_UNINTERRUPTIBLE, next);
        xhci_take_events(x);
        usb_call_timeouts(x);
        root_ports_serve(x);
        for (u32 slot = 1; slot <= x->slots && !x->dead; slot++) {
            if (x->devices[slot])
                usb_serve(x->devices[slot]);
        }
    }
}

static void interrupt(void *arg)
{
    struct xhci *x = arg;
    if (READ_ONCE(x->dead) || !x->running)
        return;
    op_write(x, OP_STATUS, STATUS_EVENT);
    reg_write(x, x->runtime + RUN_IMAN, IMAN_PENDING | IMAN_ENABLE);
    WRITE_ONCE(x->interrupts, x->interrupts + 1);
    waitq_wake_all(&x->wake);
}

static bool interrupted(void *arg)
{
    return READ_ONCE(((struct xhci *)arg)->interrupts) > 0;
}

// Interrupts are proved by a command that does nothing, before they are relied
// on.
static bool test_interrupts(struct xhci *x)
{
    struct trb t = { .control = TRB_TYPE(TRB_NO_OP) };
    bool polled = x->polled;
    x->polled = true;
    int err = xhci_command(x, &t, NULL, NULL);
    if (err == -EIO)
        xhci_give_up(x, "it refuses commands");
    if (!err && !polled && xhci_wait(x, interrupted, x, TEST_MS) == 0)
        x->polled = false;
    return !x->dead;
}

static void detach_all(struct xhci *x)
{
    for (u32 port = 1; port <= x->ports; port++) {
        if (x->roots[port])
            usb_detach(x->roots[port]);
        x->roots[port] = NULL;
    }
}

static void controller_thread(void *arg)
{
    struct xhci *x = arg;
    x->polled = pci_register_messages(&x->pci, interrupt, x, x->name) != 0;
    const char *why = xhci_start(x);
    if (why) {
        xhci_give_up(x, why);
        return;
    }
    if (!test_interrupts(x))
        return;
    log_printf("usb: controller %u: %04x:%04x at %02x:%02x.%u, %u ports, %s\n",
               x->number, x->pci.vendor, x->pci.product, x->pci.bus,
               x->pci.device, x->pci.function, x->ports,
               x->polled ? "no interrupts: polled every 8 ms" : "interrupts");
    root_ports_start(x);
    serve(x);
    detach_all(x);
}

static void found(const struct pci_function *f, void *arg UNUSED)
{
    struct xhci *x =
        controller_count < CONTROLLERS_MAX ? kzalloc(sizeof(*x)) : NULL;
    if (!x) {
        log_printf("usb: a controller is left out: too many, or no memory\n");
        return;
    }
    x->number = controller_count + 1;
    x->pci = *f;
    waitq_init(&x->wake, "usb");
    format(x->name, sizeof(x->name), "usb/%u", x->number);
    mutex_lock(&usb_lock);
    controllers[controller_count++] = x;
    mutex_unlock(&usb_lock);
    if (kthread_create(x->name, controller_thread, x, NULL))
        log_printf("usb: no memory for the thread of controller %u\n",
                   x->number);
}

void usb_start(void)
{
    pci_each(CLASS_XHCI, found, NULL);
}
