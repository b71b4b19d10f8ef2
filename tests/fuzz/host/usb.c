// What USB devices say: descriptors of devices, configurations and hubs, the
// reports of boot keyboards, and the answers of sticks. What a parser lets
// through can be used: it fits the device's context.
// link: kernel/usb/descriptors.c kernel/usb/boot_keys.c kernel/usb/context.c
// link: kernel/usb/bot.c
#include "host.h"

#include <string.h>

#include "kernel/usb/boot_keys.h"
#include "kernel/usb/bot.h"
#include "kernel/usb/context.h"

// The rest of the input, or up to `most` bytes of it.
static u8 *take_bytes(struct input *in, size_t most, size_t *n)
{
    *n = MIN(in->left, most);
    u8 *copy = guarded(in->at, *n);
    in->at += *n;
    in->left -= *n;
    return copy;
}

// As the driver describes the endpoint to the controller.
static void describe(u32 index, u32 packet, u32 interval, bool bulk,
                     const struct device_place *place)
{
    for (u32 bytes = 32; bytes <= 64; bytes += 32) {
        u32 *input = calloc(CONTEXTS * bytes, 1);
        struct endpoint_facts e = { .index = index,
                                    .packet = packet,
                                    .interval = interval,
                                    .ring = 0x1000,
                                    .bulk = bulk };
        REQUIRE(input && index >= CONTROL_ENDPOINT && index <= 31);
        input_add(input, 0);
        input_add(input, index);
        input_slot(input, bytes, place, index);
        input_endpoint(input, bytes, &e);
        free(input);
    }
}

static void check_function(const struct usb_function *f, enum usb_speed speed,
                           const struct device_place *place)
{
    u32 interval = usb_interval(speed, f->interval);
    if (f->kind == USB_OTHER)
        return;
    REQUIRE(f->endpoint >= 1 && f->endpoint <= 15);
    REQUIRE(f->packet >= 1 && f->packet <= 1024 && interval <= 15);
    REQUIRE(f->kind != USB_STORAGE ||
            (f->out >= 1 && f->out <= 15 && f->out_packet >= 8 &&
             f->out_packet <= 1024 && speed != USB_LOW));
    REQUIRE(speed != USB_LOW || f->packet <= 8);
    REQUIRE(speed != USB_FULL || f->packet <= 64);
    describe(endpoint_index(f->endpoint), f->packet, interval,
             f->kind == USB_STORAGE, place);
    if (f->kind == USB_STORAGE)
        describe(endpoint_index_out(f->out), f->out_packet, 0, true, place);
}

static void read_descriptors(struct input *in, enum usb_speed speed)
{
    struct usb_identity identity;
    struct usb_function function;
    struct usb_hub_facts hub;
    struct device_place place = { .speed = speed, .root_port = 1 };
    size_t n;
    u8 route = take_byte(in), port = (u8)(1 + take_byte(in) % USB_PORTS_MAX);
    u8 *d = take_bytes(in, take_number(in, 2), &n);
    u32 packet = usb_control_packet(d, n, speed);
    REQUIRE(packet == 0 || (packet >= 8 && packet <= 512));
    REQUIRE(!usb_parse_device(d, n, &identity) || identity.configurations);
    u32 length = usb_configuration_length(d, n);
    REQUIRE(length == 0 || length >= USB_CONFIGURATION_BYTES);
    if (usb_parse_hub(d, n, &hub)) {
        REQUIRE(hub.ports >= 1 && hub.ports <= USB_PORTS_MAX);
        REQUIRE(hub.think_time <= 3 && hub.power_ms <= 510);
        struct device_place above = place;
        place_behind_hub(&place, &above, 1, route % 5, port);
        place.hub_ports = hub.ports;
        place.think_time = hub.think_time;
        place.speed = speed;
    }
    memset(&function, 0xff, sizeof(function));
    if (usb_parse_configuration(d, n, speed, &function))
        check_function(&function, speed, &place);
    free(d);
}

static void check_text(const char *text, size_t size)
{
    REQUIRE(memchr(text, 0, size));
    for (; *text; text++)
        REQUIRE(*text >= ' ' && *text < 0x7f);
}

static void read_answers(struct input *in)
{
    char name[SCSI_NAME_BYTES];
    u32 residue = 0, sectors, sector_bytes, tag = take_number(in, 1);
    u32 data = take_number(in, 2);
    u8 additional;
    size_t n;
    u8 *d = take_bytes(in, take_byte(in) % 64, &n);
    if (bot_unwrap(d, n, tag, data, &residue) != BOT_BROKEN)
        REQUIRE(residue <= data && n == BOT_STATUS_BYTES);
    if (scsi_parse_inquiry(d, n, name))
        check_text(name, sizeof(name));
    if (scsi_parse_capacity(d, n, &sectors, &sector_bytes))
        REQUIRE(sectors);
    REQUIRE(!scsi_parse_protected(d, n) || n > 2);
    REQUIRE(scsi_parse_sense(d, n, &additional) <= SENSE_UNKNOWN);
    free(d);
}

// A key that is reported is released once it is not reported any more.
static void read_reports(struct input *in)
{
    struct boot_keys keys = { 0 };
    u8 codes[BOOT_CODES_MAX];
    for (u32 i = 0; i < 40 && in->left; i++) {
        size_t n;
        u8 *d = take_bytes(in, take_byte(in) % 12, &n);
        REQUIRE(boot_keys_report(&keys, d, n, codes) <= BOOT_CODES_MAX);
        REQUIRE(boot_keys_repeat(&keys, codes) <= BOOT_CODES_MAX);
        free(d);
    }
    static const u8 none[BOOT_REPORT_BYTES];
    boot_keys_report(&keys, none, sizeof(none), codes);
    REQUIRE(boot_keys_repeat(&keys, codes) == 0);
    REQUIRE(boot_keys_report(&keys, none, sizeof(none), codes) == 0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct input in = { data, size };
    u8 how = take_byte(&in);
    switch (how % 4) {
    case 0:
        read_answers(&in);
        break;
    case 1:
        read_reports(&in);
        break;
    default:
        read_descriptors(&in, USB_FULL + (how >> 2) % 5);
    }
    return 0;
}
