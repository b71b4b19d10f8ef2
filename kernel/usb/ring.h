// Rings of transfer request blocks (xHCI 1.2, 4.9 and 4.11): what the kernel
// asks of the controller, and the controller's events.
//
// A ring is one page. A block belongs to the side that its cycle bit names; the
// other words are written before it. Pure code without locks: one thread uses a
// ring.
#pragma once

#include "lib/types.h"

struct trb {
    u32 low, high, status, control;
};
#define RING_TRBS 256u // a page

#define TRB_CYCLE 1u
#define TRB_TOGGLE 2u       // of a link
#define TRB_INTERRUPT 0x20u // on completion
#define TRB_IMMEDIATE 0x40u // the parameter is the data
#define TRB_IN (1u << 16)
#define TRB_TYPE(type) ((type) << 10)
#define TRB_TYPE_OF(control) ((control) >> 10 & 63)
#define TRB_LINK 6u

// A ring whose last block is a link to its first.
struct trb_ring {
    struct trb *trbs;
    u32 address; // physical
    u32 next, cycle;
};
// `page`: zeroed or a ring that the controller does not use.
void ring_init(struct trb_ring *r, void *page, u32 address);
// Appends a block, without its cycle bit, and returns its physical address. The
// caller never has more than RING_TRBS - 2 blocks pending.
u32 ring_put(struct trb_ring *r, const struct trb *t);

struct event_ring {
    const struct trb *trbs;
    u32 next, cycle;
};
void events_init(struct event_ring *e, const void *page); // zeroed
bool events_pending(const struct event_ring *e);
// Takes the oldest event; false if there is none.
bool events_take(struct event_ring *e, struct trb *out);
