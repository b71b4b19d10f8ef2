// USB: xHCI controllers, hubs, boot keyboards, and sticks.
//
// Each controller has one thread, which does all its work; the interrupt
// handler only wakes it. So nothing here is locked but the list of devices,
// which readers of system.usb see: `usb_lock`. A step that waits for a device
// (usb_control, usb_pause) goes on serving events: keyboards stay alive while
// another device starts.
//
// Devices and their descriptors are not trusted, nor are the controller's
// events: each number is checked before it is used as an index. Every wait has
// a limit.
#pragma once

#include "kernel/sync/waitq.h"
#include "kernel/usb/boot_keys.h"
#include "kernel/usb/context.h"
#include "kernel/usb/ring.h"

struct xhci;
struct usb_device;

// A request to endpoint 0 (USB 2.0, 9.3).
struct usb_request {
    u8 type, request;
    u16 value, index, length;
};
#define REQUEST_IN 0x80
#define REQUEST_CLASS 0x20
#define REQUEST_INTERFACE 1
#define REQUEST_ENDPOINT 2
#define REQUEST_OTHER 3 // of a hub: a port
enum {                  // of all devices, table 9-4
    GET_STATUS = 0,
    CLEAR_FEATURE = 1,
    SET_FEATURE = 3,
    GET_DESCRIPTOR = 6,
    SET_CONFIGURATION = 9,
};

struct usb_endpoint {
    struct trb_ring ring;
    u32 index;   // in the device's contexts; 0: not in use
    u32 awaited; // address of the TRB whose event ends the transfer; 0: none
    u32 code;    // of the transfer that has ended; CODE_NONE: none yet
    u32 residue; // bytes that it has not moved
};

// What a device's function does. The driver's functions run in the controller's
// thread; those that may wait say so.
struct usb_driver {
    const char *name;
    // Starts it, after its endpoint is set up; may wait. 0 or an error.
    int (*start)(struct usb_device *d);
    // A report of n bytes has arrived at its interrupt endpoint.
    void (*report)(struct usb_device *d, const u8 *data, size_t n);
    // `work` was set, or `wanted`, which may be NULL, says so; may wait.
    void (*work)(struct usb_device *d);
    bool (*wanted)(const struct usb_device *d);
    void (*timeout)(struct usb_device *d); // `deadline` has passed
    void (*stop)(struct usb_device *d);    // it is gone; may wait
    // After `stop`, once the controller does not use memory for it any more;
    // may be NULL.
    void (*release)(struct usb_device *d);
};
extern const struct usb_driver usb_keyboard, usb_hub, usb_storage;

#define DEVICE_PATH_MAX 24u // "1-14.3.2.1.15"
#define REPORT_BYTES_MAX 64u
#define DEVICE_BUFFER_BYTES 2048u // of requests; reports follow in the page

struct usb_device {
    struct xhci *controller;
    struct usb_device *hub; // NULL: at a root port
    struct device_place place;
    u32 depth; // hubs between it and the root port
    u8 port;   // of the hub, or the root port
    u8 slot;
    char path[DEVICE_PATH_MAX];
    u16 vendor, product;
    struct usb_function function;
    const struct usb_driver *driver; // NULL: none yet, or none fits

    struct usb_endpoint control, interrupt;
    struct usb_endpoint bulk_in, bulk_out; // of storage
    u32 *contexts;                         // the controller's (output)
    u8 *buffer; // a page that the controller reads and writes
    u32 errors; // of the interrupt endpoint, since the last report

    bool listed; // in system.usb; what that shows does not change any more
    bool gone;   // its root port has lost it: requests fail at once
    bool work;   // for the driver's `work`
    bool refill; // the interrupt endpoint has failed and is to be started again
    u64 deadline; // for the driver's `timeout`, or WAIT_FOREVER

    void *data; // the driver's own
};

// --- device.c

// A device has appeared: at a root port, or at the port of a hub (`hub` is not
// NULL). Addresses it, reads its descriptors and starts its driver, if one
// fits. NULL: it is broken, which is logged. Waits.
struct usb_device *usb_attach(struct xhci *x, struct usb_device *hub, u8 port,
                              enum usb_speed speed);
// It is gone, with all devices behind it.
void usb_detach(struct usb_device *d);
// The work that its events have left.
void usb_serve(struct usb_device *d);
bool usb_has_work(const struct usb_device *d);

// --- transfer.c

// A request of up to DEVICE_BUFFER_BYTES. `data` (of r->length bytes) is sent,
// or filled; what the device did not send is 0. Waits, 1 s at most. 0; -EPIPE:
// the device refuses (stalls); -EIO, -ETIMEDOUT, -ENODEV.
int usb_control(struct usb_device *d, const struct usb_request *r, void *data);
// Sets up the interrupt endpoint, and starts to receive its reports.
int usb_start_reports(struct usb_device *d);
int usb_restart_reports(struct usb_device *d); // after an error
// Sets up the bulk endpoints.
int usb_start_bulk(struct usb_device *d);
// Moves up to 64 KiB at `address` (physical; it must not cross a multiple of 64
// KiB) in the direction of `e`. *done: the bytes moved. Waits, `ms` at most. 0;
// -EPIPE: a stall (see usb_clear_halt); -EIO, -ETIMEDOUT, -ENODEV.
int usb_bulk(struct usb_device *d, struct usb_endpoint *e, u32 address,
             u32 bytes, u32 ms, u32 *done);
int usb_clear_halt(struct usb_device *d, struct usb_endpoint *e);
// Where reports are received; free for others if the device sends none.
u8 *usb_report(struct usb_device *d);
u32 usb_report_address(const struct usb_device *d); // physical
// Takes an event of its endpoint `index`.
void usb_transfer_event(struct usb_device *d, u32 index, const struct trb *e);
// Waits, and serves the controller. -ENODEV: the device has gone.
int usb_pause(struct usb_device *d, u32 ms);

// --- usb.c

// Starts a thread for each controller; before the first program.
void usb_start(void);
