// Device contexts; see context.h.
#include "kernel/usb/context.h"
#include "lib/assert.h"

#define ROUTE_BITS 4u
#define ROUTE_DEPTH 5u

// Slot context (6.2.2)
#define SLOT_SPEED(s) ((u32)(s) << 20)
#define SLOT_HUB (1u << 26)
#define SLOT_ENTRIES(n) ((n) << 27)
#define SLOT_ROOT_PORT(n) ((u32)(n) << 16)
#define SLOT_HUB_PORTS(n) ((u32)(n) << 24)
#define SLOT_TRANSLATOR(slot, port) ((u32)(slot) | (u32)(port) << 8)
#define SLOT_THINK_TIME(n) ((u32)(n) << 16)

// Endpoint context (6.2.3)
#define ENDPOINT_INTERVAL(n) ((n) << 16)
#define ENDPOINT_ERRORS 6u // three retries (CErr)
#define ENDPOINT_TYPE(t) ((t) << 3)
#define TYPE_BULK_OUT 2u
#define TYPE_CONTROL 4u
#define TYPE_BULK_IN 6u
#define TYPE_INTERRUPT_IN 7u
#define ENDPOINT_PACKET(n) ((n) << 16)
#define ENDPOINT_CYCLE 1u
#define ENDPOINT_PAYLOAD(n) ((n) << 16)
#define AVERAGE_CONTROL 8u // 4.14.1.1
#define AVERAGE_BULK 3072u

static bool slow(enum usb_speed s)
{
    return s == USB_LOW || s == USB_FULL;
}

void place_behind_hub(struct device_place *place,
                      const struct device_place *hub, u8 slot, u32 depth,
                      u8 port)
{
    assert(depth < ROUTE_DEPTH && port && port <= USB_PORTS_MAX);
    place->route = hub->route | (u32)port << depth * ROUTE_BITS;
    place->root_port = hub->root_port;
    if (!slow(place->speed))
        return;
    if (hub->speed == USB_HIGH) {
        place->translator_slot = slot;
        place->translator_port = port;
    } else {
        place->translator_slot = hub->translator_slot;
        place->translator_port = hub->translator_port;
    }
}

void input_add(u32 *input, u32 index)
{
    assert(index < CONTEXTS - 1);
    input[1] |= 1u << index;
}

static u32 *context(u32 *input, u32 bytes, u32 index)
{
    assert(index < CONTEXTS - 1);
    return input + (index + 1) * bytes / sizeof(u32);
}

void input_slot(u32 *input, u32 bytes, const struct device_place *p,
                u32 last_index)
{
    u32 *slot = context(input, bytes, 0);
    slot[0] = p->route | SLOT_SPEED(p->speed) | SLOT_ENTRIES(last_index);
    slot[1] = SLOT_ROOT_PORT(p->root_port);
    slot[2] = SLOT_TRANSLATOR(p->translator_slot, p->translator_port);
    if (!p->hub_ports)
        return;
    slot[0] |= SLOT_HUB;
    slot[1] |= SLOT_HUB_PORTS(p->hub_ports);
    if (p->speed == USB_HIGH)
        slot[2] |= SLOT_THINK_TIME(p->think_time);
}

void input_endpoint(u32 *input, u32 bytes, const struct endpoint_facts *e)
{
    u32 *c = context(input, bytes, e->index);
    bool control = e->index == CONTROL_ENDPOINT;
    bool interrupt = !control && !e->bulk;
    u32 bulk_type = e->index & 1 ? TYPE_BULK_IN : TYPE_BULK_OUT;
    c[0] = interrupt ? ENDPOINT_INTERVAL(e->interval) : 0;
    c[1] = ENDPOINT_ERRORS | ENDPOINT_PACKET(e->packet) |
           ENDPOINT_TYPE(control   ? TYPE_CONTROL
                         : e->bulk ? bulk_type
                                   : TYPE_INTERRUPT_IN);
    c[2] = e->ring | ENDPOINT_CYCLE;
    c[3] = 0;
    c[4] = control   ? AVERAGE_CONTROL
           : e->bulk ? AVERAGE_BULK
                     : e->packet | ENDPOINT_PAYLOAD(e->packet);
}

enum endpoint_state output_endpoint_state(const u32 *output, u32 bytes,
                                          u32 index)
{
    assert(index < CONTEXTS - 1);
    return READ_ONCE(output[index * bytes / sizeof(u32)]) & 7;
}
