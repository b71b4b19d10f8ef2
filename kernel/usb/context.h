// Device contexts (xHCI 1.2, 6.2): what the controller must know of a device.
//
// A context is 8 words; with large contexts (CSZ) 8 more, unused words follow.
// Pure code.
#pragma once

#include "kernel/usb/descriptors.h"

#define CONTEXT_WORDS 8u
#define CONTEXTS 33u        // of an input context: control, slot, 31 endpoints
#define CONTROL_ENDPOINT 1u // index of endpoint 0 in a device's contexts
#define endpoint_index(number) ((number)*2u + 1) // of an IN endpoint
#define endpoint_index_out(number) ((number)*2u)

// Where a device is, and what a hub adds.
struct device_place {
    enum usb_speed speed;
    u32 route; // 4 bits for the port of each hub, the first one lowest
    u8 root_port;
    u8 translator_slot, translator_port; // high-speed hub of a slower device
    u8 hub_ports, think_time;            // 0: it is no hub
};

// Fills `place` for a device at `port` (1-15) of a hub whose place and slot are
// given, `depth` hubs (0-4) below the root port. The caller sets the speed.
void place_behind_hub(struct device_place *place,
                      const struct device_place *hub, u8 slot, u32 depth,
                      u8 port);

struct endpoint_facts {
    u32 index; // CONTROL_ENDPOINT, or endpoint_index, or that of OUT
    u32 packet, interval;
    u32 ring;  // physical address
    bool bulk; // else: control or interrupt
};

// The parts of an input context. `bytes`: 32 or 64. The caller zeroes it first.
void input_add(u32 *input, u32 index); // index 0: the slot
void input_slot(u32 *input, u32 bytes, const struct device_place *p,
                u32 last_index);
void input_endpoint(u32 *input, u32 bytes, const struct endpoint_facts *e);

enum endpoint_state {
    ENDPOINT_DISABLED,
    ENDPOINT_RUNNING,
    ENDPOINT_HALTED,
    ENDPOINT_STOPPED,
    ENDPOINT_ERROR,
};
// Of an output context.
enum endpoint_state output_endpoint_state(const u32 *output, u32 bytes,
                                          u32 index);
