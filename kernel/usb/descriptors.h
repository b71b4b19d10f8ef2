// What USB devices say of themselves (USB 2.0, 9.6 and 11.23.2).
//
// The bytes come from the device and may be anything: a parser reads nothing
// beyond the `n` bytes it is given, and refuses what contradicts itself. Pure
// code.
#pragma once

#include "lib/types.h"

// As in port registers and slot contexts (xHCI 1.2, table 7-13).
enum usb_speed { USB_FULL = 1, USB_LOW, USB_HIGH, USB_SUPER, USB_SUPER_PLUS };

#define USB_DEVICE_BYTES 18u
#define USB_CONFIGURATION_BYTES 9u
#define USB_HUB_BYTES 9u // read of a hub's descriptor; more is not needed

enum { // types of descriptors
    USB_DESCRIPTOR_DEVICE = 1,
    USB_DESCRIPTOR_CONFIGURATION = 2,
    USB_DESCRIPTOR_INTERFACE = 4,
    USB_DESCRIPTOR_ENDPOINT = 5,
    USB_DESCRIPTOR_HUB = 0x29,
};

// Reads the packet size of endpoint 0 from the first 8 bytes of a device's
// descriptor. 0: the bytes are no descriptor, or not valid at this speed.
u32 usb_control_packet(const u8 *d, size_t n, enum usb_speed speed);

struct usb_identity {
    u16 vendor, product;
    u8 configurations;
};
bool usb_parse_device(const u8 *d, size_t n, struct usb_identity *out);

// The length of the whole configuration, from its first 9 bytes. 0: not valid.
u32 usb_configuration_length(const u8 *d, size_t n);

// The function of a device that the kernel can use, with its endpoints: the
// first boot keyboard (HID 1.11, appendix B), hub (interrupt IN), or disk (mass
// storage, SCSI, bulk-only; bulk IN and OUT).
enum usb_kind { USB_OTHER, USB_KEYBOARD, USB_HUB, USB_STORAGE };
struct usb_function {
    enum usb_kind kind;
    u8 configuration, interface;
    u8 endpoint; // 1-15
    u8 out;      // of storage: 1-15
    u8 interval; // as the endpoint's descriptor has it
    u16 packet;  // bytes; 1 to the most that the speed allows
    u16 out_packet;
};
// False: the configuration is broken. USB_OTHER: it is right, but has neither.
bool usb_parse_configuration(const u8 *d, size_t n, enum usb_speed speed,
                             struct usb_function *out);

#define USB_PORTS_MAX 15u // of a hub: a route string has 4 bits for a port
struct usb_hub_facts {
    u8 ports;      // 1 to USB_PORTS_MAX; further ones are not used
    u8 think_time; // as in slot contexts
    u16 power_ms;  // until a port's power is good
};
bool usb_parse_hub(const u8 *d, size_t n, struct usb_hub_facts *out);

// An interrupt endpoint's period as a power of two, in units of 125 us (xHCI
// 1.2, 6.2.3.6).
u32 usb_interval(enum usb_speed speed, u8 interval);
