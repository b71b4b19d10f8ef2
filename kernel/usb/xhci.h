// The xHCI controller, as the rest of kernel/usb uses it.
#pragma once

#include "arch/pci.h"
#include "kernel/base/errors.h"
#include "kernel/usb/usb.h"

#define XHCI_SLOTS_MAX 64u // devices, hubs included
#define XHCI_PORTS_MAX 255u
#define XHCI_SCRATCHPADS_MAX 1023u

struct xhci {
    u32 number; // 1 for the first one
    char name[16];
    struct pci_function pci;
    u8 *registers;
    u32 size;                            // of the registers
    u32 operational, runtime, doorbells; // offsets
    u32 slots, ports, context_bytes;
    bool port_power;

    u32 *device_contexts; // pages that the controller reads
    u32 *input;           // the input context
    u32 *segments;        // the event ring's table
    u32 *scratchpad_list;
    void **scratchpads;
    struct trb_ring commands;
    struct event_ring events;

    struct waitq wake;
    u32 interrupts; // written by the interrupt handler; wraps
    u32 served;     // interrupts that the thread has seen
    bool running;   // set before the first interrupt
    bool polled;    // there are no interrupts
    bool dead;      // given up

    u32 awaited; // the address of the command's TRB; 0: none
    u32 answer_code, answer_slot;

    u32 changed[256 / 32];                        // root ports, as bits
    struct usb_device *roots[XHCI_PORTS_MAX + 1]; // by root port
    u8 failures[XHCI_PORTS_MAX + 1];
    struct usb_device *devices[XHCI_SLOTS_MAX + 1]; // by slot; usb_lock
};

// --- its registers

static inline u32 reg_read(const struct xhci *x, u32 offset)
{
    assert(offset < x->size - 3);
    return *(volatile u32 *)(x->registers + offset);
}
static inline void reg_write(struct xhci *x, u32 offset, u32 value)
{
    assert(offset < x->size - 3);
    *(volatile u32 *)(x->registers + offset) = value;
}
static inline u32 op_read(const struct xhci *x, u32 reg)
{
    return reg_read(x, x->operational + reg);
}
static inline void op_write(struct xhci *x, u32 reg, u32 value)
{
    reg_write(x, x->operational + reg, value);
}

// --- xhci_start.c

// Maps, resets and starts the controller. NULL, or why it cannot be used.
// Waits.
const char *xhci_start(struct xhci *x);
// Stops its accesses to memory. Also after a failed xhci_start.
void xhci_stop(struct xhci *x);

// --- xhci.c

extern struct error_counter stray_events; // that nothing has asked for
// Takes all events. Finds out whether the controller has failed.
void xhci_take_events(struct xhci *x);
bool xhci_has_events(const struct xhci *x);
// Serves events until `done(arg)` or the time limit, in ms. 0, -ETIMEDOUT,
// -ENODEV: the controller is dead.
int xhci_wait(struct xhci *x, bool (*done)(void *arg), void *arg, u32 ms);
// Gives the controller up.
void xhci_give_up(struct xhci *x, const char *why);
static inline void xhci_ring_doorbell(struct xhci *x, u32 slot, u32 index)
{
    reg_write(x, x->doorbells + slot * 4, index);
}

// Runs a command (its cycle bit is clear), and waits. 0; -EIO with the
// controller's code in *code (which may be NULL); -ENODEV. *slot: for
// TRB_ENABLE_SLOT.
int xhci_command(struct xhci *x, const struct trb *t, u32 *code, u32 *slot);

// --- root_ports.c

void root_ports_start(struct xhci *x);
// Serves the ports that have changed. Waits.
void root_ports_serve(struct xhci *x);
// A port has changed: its device, if it has gone, is marked.
void root_port_changed(struct xhci *x, u32 port);

// --- usb.c

// Calls the drivers whose `deadline` has passed; the earliest of the others.
void usb_call_timeouts(struct xhci *x);
u64 usb_next_deadline(const struct xhci *x);
