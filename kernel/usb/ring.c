// Rings of transfer request blocks; see ring.h.
#include "kernel/usb/ring.h"
#include "lib/assert.h"
#include "lib/string.h"

#define LINK_AT (RING_TRBS - 1)

void ring_init(struct trb_ring *r, void *page, u32 address)
{
    memset(page, 0, RING_TRBS * sizeof(struct trb));
    *r = (struct trb_ring){ page, address, .next = 0, .cycle = TRB_CYCLE };
    r->trbs[LINK_AT].low = address;
}

// Gives a block to the controller: x86 stores are seen in order, so only the
// compiler must not move them.
static void hand_over(struct trb *t, u32 control)
{
    barrier();
    WRITE_ONCE(t->control, control);
}

u32 ring_put(struct trb_ring *r, const struct trb *t)
{
    assert(r->next < LINK_AT && !(t->control & TRB_CYCLE));
    u32 address = r->address + r->next * sizeof(*t);
    struct trb *to = &r->trbs[r->next++];
    to->low = t->low;
    to->high = t->high;
    to->status = t->status;
    hand_over(to, t->control | r->cycle);
    if (r->next == LINK_AT) {
        hand_over(&r->trbs[LINK_AT],
                  TRB_TYPE(TRB_LINK) | TRB_TOGGLE | r->cycle);
        r->next = 0;
        r->cycle ^= TRB_CYCLE;
    }
    return address;
}

void events_init(struct event_ring *e, const void *page)
{
    *e = (struct event_ring){ page, .next = 0, .cycle = TRB_CYCLE };
}

bool events_pending(const struct event_ring *e)
{
    return (READ_ONCE(e->trbs[e->next].control) & TRB_CYCLE) == e->cycle;
}

bool events_take(struct event_ring *e, struct trb *out)
{
    if (!events_pending(e))
        return false;
    barrier(); // the other words are read after the cycle bit
    const struct trb *t = &e->trbs[e->next];
    out->low = READ_ONCE(t->low);
    out->high = READ_ONCE(t->high);
    out->status = READ_ONCE(t->status);
    out->control = READ_ONCE(t->control);
    if (++e->next == RING_TRBS) {
        e->next = 0;
        e->cycle ^= TRB_CYCLE;
    }
    return true;
}
