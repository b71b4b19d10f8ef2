// Parsers of USB descriptors; see descriptors.h.
#include "kernel/usb/descriptors.h"
#include "lib/string.h"

#define CLASS_HID 3
#define CLASS_HUB 9
#define SUBCLASS_BOOT 1
#define PROTOCOL_KEYBOARD 1
#define CLASS_STORAGE 8
#define SUBCLASS_SCSI 6
#define PROTOCOL_BULK_ONLY 0x50

#define ENDPOINT_IN 0x80
#define ENDPOINT_NUMBER 0x0f
#define ENDPOINT_KIND 3
#define ENDPOINT_BULK 2
#define ENDPOINT_INTERRUPT 3
#define PACKET_BITS 0x7ff

#define INTERFACE_BYTES 9u
#define ENDPOINT_BYTES 7u
#define HUB_BYTES_LEAST 7u

static u16 word(const u8 *d)
{
    return (u16)(d[0] | d[1] << 8);
}

// USB 2.0, 5.5.3; USB 3.2, 9.6.1 (2 to the power of 9).
u32 usb_control_packet(const u8 *d, size_t n, enum usb_speed speed)
{
    if (n < 8 || d[0] < USB_DEVICE_BYTES || d[1] != USB_DESCRIPTOR_DEVICE)
        return 0;
    u32 size = d[7];
    switch (speed) {
    case USB_LOW:
        return size == 8 ? size : 0;
    case USB_FULL:
        return size == 8 || size == 16 || size == 32 || size == 64 ? size : 0;
    case USB_HIGH:
        return size == 64 ? size : 0;
    default:
        return size == 9 ? 1u << size : 0;
    }
}

bool usb_parse_device(const u8 *d, size_t n, struct usb_identity *out)
{
    if (n < USB_DEVICE_BYTES || d[0] < USB_DEVICE_BYTES ||
        d[1] != USB_DESCRIPTOR_DEVICE)
        return false;
    *out = (struct usb_identity){ word(d + 8), word(d + 10), d[17] };
    return out->configurations > 0;
}

u32 usb_configuration_length(const u8 *d, size_t n)
{
    if (n < USB_CONFIGURATION_BYTES || d[0] < USB_CONFIGURATION_BYTES ||
        d[1] != USB_DESCRIPTOR_CONFIGURATION)
        return 0;
    u32 length = word(d + 2);
    return length >= d[0] ? length : 0;
}

static enum usb_kind kind_of(const u8 *d)
{
    if (d[3] != 0) // an alternate setting
        return USB_OTHER;
    if (d[5] == CLASS_HUB)
        return USB_HUB;
    if (d[5] == CLASS_HID && d[6] == SUBCLASS_BOOT && d[7] == PROTOCOL_KEYBOARD)
        return USB_KEYBOARD;
    if (d[5] == CLASS_STORAGE && d[6] == SUBCLASS_SCSI &&
        d[7] == PROTOCOL_BULK_ONLY)
        return USB_STORAGE;
    return USB_OTHER;
}

static u32 packet_max(enum usb_speed speed)
{
    switch (speed) {
    case USB_LOW:
        return 8;
    case USB_FULL:
        return 64;
    default:
        return 1024;
    }
}

static bool is_interrupt_in(const u8 *d)
{
    return d[2] & ENDPOINT_IN && d[2] & ENDPOINT_NUMBER &&
           (d[3] & ENDPOINT_KIND) == ENDPOINT_INTERRUPT;
}

// USB 2.0, 5.8.3; USB 3.2, 9.6.6.
static bool is_bulk_packet(u32 packet, enum usb_speed speed)
{
    switch (speed) {
    case USB_LOW:
        return false;
    case USB_FULL:
        return packet == 8 || packet == 16 || packet == 32 || packet == 64;
    case USB_HIGH:
        return packet == 512;
    default:
        return packet == 1024;
    }
}

// False: the packet size is impossible.
static bool take_bulk(const u8 *d, enum usb_speed speed, struct usb_function *f)
{
    u16 packet = word(d + 4) & PACKET_BITS;
    if ((d[3] & ENDPOINT_KIND) != ENDPOINT_BULK || !(d[2] & ENDPOINT_NUMBER))
        return true;
    if (d[2] & ENDPOINT_IN && !f->endpoint) {
        f->endpoint = d[2] & ENDPOINT_NUMBER;
        f->packet = packet;
    } else if (!(d[2] & ENDPOINT_IN) && !f->out) {
        f->out = d[2] & ENDPOINT_NUMBER;
        f->out_packet = packet;
    }
    return is_bulk_packet(packet, speed);
}

// False: the packet size is impossible.
static bool take_endpoint(const u8 *d, enum usb_speed speed,
                          struct usb_function *f)
{
    u32 packet = word(d + 4) & PACKET_BITS;
    f->endpoint = d[2] & ENDPOINT_NUMBER;
    f->packet = (u16)packet;
    f->interval = d[6];
    return packet && packet <= packet_max(speed);
}

// Takes what the endpoint adds to its interface, and the interface once it has
// all endpoints. False: the packet size is impossible.
static bool add_endpoint(const u8 *d, enum usb_speed speed,
                         struct usb_function *f, struct usb_function *out)
{
    bool whole = f->kind != USB_STORAGE && is_interrupt_in(d);
    if (f->kind == USB_OTHER || out->kind != USB_OTHER)
        return true;
    if (f->kind == USB_STORAGE) {
        if (!take_bulk(d, speed, f))
            return false;
        whole = f->endpoint && f->out;
    } else if (whole && !take_endpoint(d, speed, f)) {
        return false;
    }
    if (whole)
        *out = *f;
    return true;
}

// An interface without its endpoints cannot be used, so the first one that has
// them is taken.
bool usb_parse_configuration(const u8 *d, size_t n, enum usb_speed speed,
                             struct usb_function *out)
{
    u32 length = usb_configuration_length(d, n);
    struct usb_function f = { .kind = USB_OTHER };
    *out = f;
    if (!length || length > n)
        return false;
    f.configuration = out->configuration = d[5];
    for (u32 at = d[0]; at < length; at += d[at]) {
        const u8 *p = d + at;
        if (length - at < 2 || p[0] < 2 || p[0] > length - at)
            return false;
        if (p[1] == USB_DESCRIPTOR_INTERFACE) {
            if (p[0] < INTERFACE_BYTES)
                return false;
            f.kind = kind_of(p);
            f.interface = p[2];
            f.endpoint = f.out = 0;
        } else if (p[1] == USB_DESCRIPTOR_ENDPOINT) {
            if (p[0] < ENDPOINT_BYTES)
                return false;
            if (!add_endpoint(p, speed, &f, out))
                return false;
        }
    }
    return true;
}

bool usb_parse_hub(const u8 *d, size_t n, struct usb_hub_facts *out)
{
    if (n < HUB_BYTES_LEAST || d[0] < HUB_BYTES_LEAST ||
        d[1] != USB_DESCRIPTOR_HUB || !d[2])
        return false;
    u8 ports = MIN(d[2], (u8)USB_PORTS_MAX);
    *out = (struct usb_hub_facts){
        .ports = ports,
        .think_time = word(d + 3) >> 5 & 3,
        .power_ms = (u16)(d[5] * 2),
    };
    return true;
}

static u32 log2_floor(u32 n)
{
    u32 log = 0;
    while (n >>= 1)
        log++;
    return log;
}

u32 usb_interval(enum usb_speed speed, u8 interval)
{
    u32 i = MAX(interval, (u8)1);
    if (speed == USB_FULL || speed == USB_LOW) // in ms
        return MAX(3u, MIN(10u, log2_floor(i * 8)));
    return MIN(i, 16u) - 1;
}
