// USB: descriptors (whole, cut, damaged), boot keyboards, rings, contexts.
// link: kernel/usb/descriptors.c kernel/usb/boot_keys.c kernel/usb/ring.c
// link: kernel/usb/context.c kernel/base/keymap.c kernel/base/layout.c
// link: kernel/usb/bot.c
// lib/utf8.c
#include "test.h"

#include "kernel/base/keymap.h"
#include "kernel/usb/boot_keys.h"
#include "kernel/usb/bot.h"
#include "kernel/usb/context.h"
#include "kernel/usb/ring.h"

// --- descriptors

// QEMU's usb-kbd at high speed.
static const u8 device[18] = { 18, 1,    0,    2, 0, 0, 0, 64, 0x27,
                               6,  0x01, 0x00, 0, 0, 1, 4, 11, 1 };
static const u8 keyboard[] = {
    9, 2,    34,   0, 1, 1, 8,    0xa0, 50, // configuration 1
    9, 4,    0,    0, 1, 3, 1,    1,    0,  // boot keyboard
    9, 0x21, 0x11, 1, 0, 1, 0x22, 63,   0,  // HID
    7, 5,    0x81, 3, 8, 0, 7,              // endpoint 1 IN, interrupt
};
static const u8 hub[] = {
    9, 2, 25,   0, 1, 1, 0,    0xe0, 0, // configuration 1
    9, 4, 0,    0, 1, 9, 0,    0,    0, // hub
    7, 5, 0x81, 3, 2, 0, 0xff,          // endpoint 1 IN, interrupt
};
// A mouse, an alternate setting of a keyboard, an endpoint that sends, and then
// the keyboard.
static const u8 composite[] = {
    9, 2, 75, 0,  3, 5,    0,    0x80, 50, 9,  4,  0,  0, 1, 3,
    1, 2, 0,  7,  5, 0x81, 3,    4,    0,  10, 9,  4,  1, 1, 1,
    3, 1, 1,  0,  7, 5,    0x82, 3,    8,  0,  10, 9,  4, 2, 0,
    2, 3, 1,  1,  0, 7,    5,    0x03, 3,  8,  0,  10, 7, 5, 0x84,
    3, 8, 0,  24, 9, 0x30, 1,    1,    1,  1,  1,  1,  1,
};
// A stick that also speaks another protocol, in an alternate setting.
static const u8 stick[] = {
    9, 2,    55, 0, 1, 1,    0, 0x80, 50,   9, 4, 0, 0,    2, 8, 6, 0x50, 0, 7,
    5, 0x81, 2,  0, 2, 0,    7, 5,    0x02, 2, 0, 2, 0,    9, 4, 0, 1,    2, 8,
    6, 0x62, 0,  7, 5, 0x83, 2, 0,    2,    0, 7, 5, 0x04, 2, 0, 2, 0,
};
static const u8 hub_facts[] = { 9, 0x29, 8, 0x29, 0, 50, 0, 0, 0xff };

// The parser may read exactly `n` bytes: the sanitizer sees one more.
static bool configuration(const u8 *d, size_t n, enum usb_speed speed,
                          struct usb_function *f)
{
    u8 *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, d, n);
    memset(f, 0xff, sizeof(*f));
    bool right = usb_parse_configuration(copy + (n ? 0 : 1), n, speed, f);
    free(copy);
    return right;
}

static void whole_descriptors(void **state UNUSED)
{
    struct usb_identity id;
    assert_int_equal(usb_control_packet(device, 8, USB_HIGH), 64);
    assert_int_equal(usb_control_packet(device, 8, USB_FULL), 64);
    assert_int_equal(usb_control_packet(device, 8, USB_LOW), 0);
    assert_int_equal(usb_control_packet(device, 8, USB_SUPER), 0);
    assert_true(usb_parse_device(device, sizeof(device), &id));
    assert_int_equal(id.vendor, 0x0627);
    assert_int_equal(id.product, 0x0001);

    struct usb_function f;
    assert_int_equal(usb_configuration_length(keyboard, 9), sizeof(keyboard));
    assert_true(configuration(keyboard, sizeof(keyboard), USB_HIGH, &f));
    assert_int_equal(f.kind, USB_KEYBOARD);
    assert_int_equal(f.configuration, 1);
    assert_int_equal(f.endpoint, 1);
    assert_int_equal(f.packet, 8);
    assert_int_equal(f.interval, 7);
    assert_true(configuration(hub, sizeof(hub), USB_FULL, &f));
    assert_int_equal(f.kind, USB_HUB);
}

static void the_boot_keyboard_is_found_among_others(void **state UNUSED)
{
    struct usb_function f;
    u8 copy[sizeof(composite)];
    memcpy(copy, composite, sizeof(copy));
    copy[2] = sizeof(copy);
    assert_true(configuration(copy, sizeof(copy), USB_FULL, &f));
    assert_int_equal(f.kind, USB_KEYBOARD);
    assert_int_equal(f.configuration, 5);
    assert_int_equal(f.interface, 2);
    assert_int_equal(f.endpoint, 4);
    assert_int_equal(f.interval, 24);
}

static void cut_descriptors_are_refused(void **state UNUSED)
{
    struct usb_function f;
    struct usb_identity id;
    struct usb_hub_facts facts;
    for (size_t n = 0; n < sizeof(keyboard); n++) {
        assert_false(configuration(keyboard, n, USB_HIGH, &f));
        assert_int_equal(f.kind, USB_OTHER);
    }
    for (size_t n = 0; n < sizeof(device); n++) {
        assert_false(usb_parse_device(device, n, &id));
        if (n < 8)
            assert_int_equal(usb_control_packet(device, n, USB_HIGH), 0);
    }
    for (size_t n = 0; n < 7; n++)
        assert_false(usb_parse_hub(hub_facts, n, &facts));
}

// What the parser says of damaged bytes must be possible.
static void damaged(const u8 *d, size_t n)
{
    struct usb_function f;
    u8 copy[128];
    for (u32 i = 0; i < 200000; i++) {
        memcpy(copy, d, n);
        for (u32 flips = 1 + random_below(4); flips > 0; flips--)
            copy[random_below((u32)n)] ^= (u8)(1u << random_below(8));
        size_t length = random_below(4) ? n : random_below((u32)n + 1);
        enum usb_speed speed = USB_FULL + random_below(5);
        if (!configuration(copy, length, speed, &f) || f.kind == USB_OTHER)
            continue;
        assert_true(f.endpoint >= 1 && f.endpoint <= 15);
        u32 most = speed == USB_LOW ? 8 : speed == USB_FULL ? 64 : 1024;
        assert_true(f.packet >= 1 && f.packet <= most);
        u32 interval = usb_interval(speed, f.interval);
        assert_true(interval <= 15);
    }
}

static void damaged_descriptors(void **state UNUSED)
{
    damaged(keyboard, sizeof(keyboard));
    damaged(hub, sizeof(hub));
    damaged(composite, sizeof(composite));
}

static void broken_fields(void **state UNUSED)
{
    struct usb_function f;
    u8 copy[sizeof(keyboard)];
    const struct {
        u8 at, value;
    } broken[] = {
        { 0, 8 },  { 1, 1 },  { 2, 33 },   { 2, 35 }, { 3, 1 },
        { 9, 0 },  { 9, 8 },  { 18, 1 },   { 27, 6 }, { 27, 8 },
        { 31, 0 }, { 32, 4 }, { 18, 200 },
    };
    for (u32 i = 0; i < ARRAY_SIZE(broken); i++) {
        memcpy(copy, keyboard, sizeof(copy));
        copy[broken[i].at] = broken[i].value;
        bool right = configuration(copy, sizeof(copy), USB_FULL, &f);
        assert_false(right && f.kind == USB_KEYBOARD);
    }
}

static void hubs(void **state UNUSED)
{
    struct usb_hub_facts h;
    assert_true(usb_parse_hub(hub_facts, sizeof(hub_facts), &h));
    assert_int_equal(h.ports, 8);
    assert_int_equal(h.think_time, 1);
    assert_int_equal(h.power_ms, 100);
    u8 copy[9];
    memcpy(copy, hub_facts, sizeof(copy));
    copy[2] = 255;
    assert_true(usb_parse_hub(copy, sizeof(copy), &h));
    assert_int_equal(h.ports, USB_PORTS_MAX);
    copy[2] = 0;
    assert_false(usb_parse_hub(copy, sizeof(copy), &h));
}

static void intervals(void **state UNUSED)
{
    assert_int_equal(usb_interval(USB_LOW, 10), 6);    // 8 ms
    assert_int_equal(usb_interval(USB_FULL, 1), 3);    // 1 ms
    assert_int_equal(usb_interval(USB_FULL, 255), 10); // 128 ms
    assert_int_equal(usb_interval(USB_FULL, 0), 3);
    assert_int_equal(usb_interval(USB_HIGH, 7), 6); // 8 ms
    assert_int_equal(usb_interval(USB_HIGH, 0), 0);
    assert_int_equal(usb_interval(USB_HIGH, 255), 15);
}

// --- keys

static struct boot_keys keys_state;
static struct keymap map;

// The text that a report yields.
static const char *report(u8 modifiers, u8 a, u8 b)
{
    static char text[BOOT_CODES_MAX * KEY_TEXT_MAX];
    u8 r[BOOT_REPORT_BYTES] = { modifiers, 0, a, b }, codes[BOOT_CODES_MAX];
    size_t n = boot_keys_report(&keys_state, r, sizeof(r), codes), length = 0;
    for (size_t i = 0; i < n; i++)
        length += keymap_code(&map, codes[i], text + length);
    text[length] = 0;
    return text;
}

static void begin(void)
{
    memset(&keys_state, 0, sizeof(keys_state));
    memset(&map, 0, sizeof(map));
    map.num_lock = true;
}

static void typing(void **state UNUSED)
{
    begin();
    assert_string_equal(report(0, 6, 6), "c"); // one key, named twice
    assert_string_equal(report(0, 4, 0), "a");
    assert_string_equal(report(0, 4, 5), "b"); // both are held
    assert_string_equal(report(0, 5, 0), "");  // a is released
    assert_string_equal(report(0, 5, 5), "");  // twice the same
    assert_string_equal(report(0, 0, 0), "");
    assert_string_equal(report(2, 4, 0), "A");
    assert_string_equal(report(0x20, 4, 5), "B");
    assert_string_equal(report(0, 0, 0), "");
    assert_string_equal(report(1, 6, 0), "\003"); // ^C
    assert_string_equal(report(0, 0, 0), "");
    assert_string_equal(report(0, 0x4f, 0), "\033[C");
    assert_string_equal(report(0, 0x5f, 0), "7");
    assert_string_equal(report(0, 0x28, 0), "\r");
    assert_string_equal(report(0, 0x39, 0), ""); // Caps Lock
    assert_string_equal(report(0, 4, 0), "A");
    assert_string_equal(report(0, 0xff, 0x65), ""); // unknown
}

static void requests(void **state UNUSED)
{
    begin();
    assert_string_equal(report(4, 0, 0), "");
    assert_string_equal(report(4, 0x46, 0), ""); // Alt+SysRq
    assert_string_equal(report(4, 0x46, 0x0f), "");
    assert_int_equal(map.request, 'l');
}

// Too many keys: nothing is released or pressed (HID 1.11, appendix C).
static void phantom_keys(void **state UNUSED)
{
    begin();
    assert_string_equal(report(0, 4, 0), "a");
    assert_string_equal(report(0, 1, 1), "");
    assert_int_equal(keys_state.held[0], 4);
    assert_string_equal(report(0, 4, 5), "b");
}

static void repeated_keys(void **state UNUSED)
{
    u8 codes[BOOT_CODES_MAX];
    begin();
    assert_int_equal(boot_keys_repeat(&keys_state, codes), 0);
    report(0, 4, 0);
    report(0, 4, 5);
    assert_int_equal(boot_keys_repeat(&keys_state, codes), 1);
    assert_int_equal(codes[0], 0x30); // the last one
    report(0, 4, 0);
    assert_int_equal(boot_keys_repeat(&keys_state, codes), 0);
    report(0, 0x4f, 0);
    assert_int_equal(boot_keys_repeat(&keys_state, codes), 2);
    assert_int_equal(codes[0], 0xe0);
    report(0, 0x39, 0); // Caps Lock
    assert_int_equal(boot_keys_repeat(&keys_state, codes), 0);
}

static void any_report(void **state UNUSED)
{
    u8 codes[BOOT_CODES_MAX];
    begin();
    for (u32 i = 0; i < 300000; i++) {
        size_t n = random_below(4) ? BOOT_REPORT_BYTES : random_below(9);
        u8 *r = malloc(n ? n : 1);
        assert_non_null(r);
        for (size_t j = 0; j < n; j++)
            r[j] =
                (u8)(random_below(3) ? random_below(0x70) : random_below(256));
        size_t count = boot_keys_report(&keys_state, r, n, codes);
        free(r);
        assert_true(count <= BOOT_CODES_MAX);
        assert_true(n == BOOT_REPORT_BYTES || count == 0);
        for (u32 a = 0; a < BOOT_KEYS; a++)
            for (u32 b = 0; b < a; b++)
                assert_true(!keys_state.held[a] ||
                            keys_state.held[a] != keys_state.held[b]);
    }
    // All keys are released: each press had its release.
    u8 none[BOOT_REPORT_BYTES] = { 0 };
    boot_keys_report(&keys_state, none, sizeof(none), codes);
    assert_int_equal(boot_keys_report(&keys_state, none, sizeof(none), codes),
                     0);
}

// --- rings

static struct trb page[RING_TRBS];

// The controller's side: follows the cycle bit and the links.
static void blocks_arrive_in_order(void **state UNUSED)
{
    struct trb_ring r;
    u32 at = 0, cycle = TRB_CYCLE;
    ring_init(&r, page, 0x1000);
    for (u32 i = 1; i < 2000; i++) {
        assert_int_not_equal(page[at].control & TRB_CYCLE, cycle);
        struct trb t = { .low = i, .status = ~i, .control = TRB_TYPE(1) };
        assert_int_equal(ring_put(&r, &t), 0x1000 + at * 16);
        assert_int_equal(page[at].control & TRB_CYCLE, cycle);
        assert_int_equal(page[at].low, i);
        assert_int_equal(page[at].status, ~i);
        at++;
        if (TRB_TYPE_OF(page[at].control) == TRB_LINK &&
            (page[at].control & TRB_CYCLE) == cycle) {
            assert_int_equal(at, RING_TRBS - 1);
            assert_int_equal(page[at].low, 0x1000);
            assert_true(page[at].control & TRB_TOGGLE);
            at = 0;
            cycle ^= TRB_CYCLE;
        }
    }
}

static void events_arrive_in_order(void **state UNUSED)
{
    struct event_ring e;
    struct trb t;
    memset(page, 0, sizeof(page));
    events_init(&e, page);
    u32 written = 0, taken = 0;
    while (taken < 3000) {
        for (u32 n = random_below(RING_TRBS); n > 0; n--, written++) {
            struct trb *to = &page[written % RING_TRBS];
            *to = (struct trb){ .low = written };
            to->control = written / RING_TRBS % 2 ? 0 : TRB_CYCLE;
        }
        while (events_take(&e, &t))
            assert_int_equal(t.low, taken++);
        assert_int_equal(taken, written);
        assert_false(events_pending(&e));
    }
}

// --- contexts

static void places(void **state UNUSED)
{
    struct device_place at_root = { .speed = USB_HIGH, .root_port = 7 };
    struct device_place far = { .speed = USB_HIGH };
    place_behind_hub(&far, &at_root, 3, 0, 2);
    assert_int_equal(far.route, 0x2);
    assert_int_equal(far.root_port, 7);
    assert_int_equal(far.translator_slot, 0); // as fast as the hub
    struct device_place slow_hub = { .speed = USB_FULL };
    place_behind_hub(&slow_hub, &far, 4, 1, 15);
    assert_int_equal(slow_hub.route, 0xf2);
    assert_int_equal(slow_hub.translator_slot, 4);
    assert_int_equal(slow_hub.translator_port, 15);
    struct device_place key = { .speed = USB_LOW };
    place_behind_hub(&key, &slow_hub, 5, 2, 1);
    assert_int_equal(key.route, 0x1f2);
    assert_int_equal(key.translator_slot, 4); // that of the high-speed hub
    assert_int_equal(key.translator_port, 15);
    struct device_place under_full = { .speed = USB_LOW };
    struct device_place full = { .speed = USB_FULL, .root_port = 1 };
    place_behind_hub(&under_full, &full, 1, 0, 1);
    assert_int_equal(under_full.translator_slot, 0);
}

static void contexts(void **state UNUSED)
{
    for (u32 bytes = 32; bytes <= 64; bytes += 32) {
        u32 input[CONTEXTS * 16] = { 0 }, words = bytes / 4;
        struct device_place p = { .speed = USB_HIGH,
                                  .route = 0x21,
                                  .root_port = 5,
                                  .hub_ports = 4,
                                  .think_time = 2 };
        struct endpoint_facts e = { 3, 8, 6, 0x5000, false };
        input_add(input, 0);
        input_add(input, 3);
        input_slot(input, bytes, &p, 3);
        input_endpoint(input, bytes, &e);
        const u32 *slot = input + words, *endpoint = input + 4 * words;
        assert_int_equal(input[1], 1 | 8);
        assert_int_equal(slot[0], 0x21 | 3u << 20 | 1u << 26 | 3u << 27);
        assert_int_equal(slot[1], 5u << 16 | 4u << 24);
        assert_int_equal(slot[2], 2u << 16);
        assert_int_equal(endpoint[0], 6u << 16);
        assert_int_equal(endpoint[1], 3u << 1 | 7u << 3 | 8u << 16);
        assert_int_equal(endpoint[2], 0x5001);
        assert_int_equal(endpoint[4], 8 | 8u << 16);
        u32 output[32 * 16] = { 0 };
        output[3 * words] = 0x12345600 | ENDPOINT_HALTED;
        assert_int_equal(output_endpoint_state(output, bytes, 3),
                         ENDPOINT_HALTED);
    }
}

// --- storage

static void sticks(void **state UNUSED)
{
    struct usb_function f;
    u8 copy[sizeof(stick)];
    assert_true(configuration(stick, sizeof(stick), USB_HIGH, &f));
    assert_int_equal(f.kind, USB_STORAGE);
    assert_int_equal(f.endpoint, 1);
    assert_int_equal(f.out, 2);
    assert_int_equal(f.packet, 512);
    assert_int_equal(f.out_packet, 512);
    assert_false(configuration(stick, sizeof(stick), USB_FULL, &f));
    assert_false(configuration(stick, sizeof(stick), USB_SUPER, &f));
    memcpy(copy, stick, sizeof(copy));
    copy[16] = 0x62; // no bulk-only transport
    assert_true(configuration(copy, sizeof(copy), USB_HIGH, &f));
    assert_int_equal(f.kind, USB_OTHER);
    copy[16] = 0x50;
    copy[27] = 0x82; // both send
    assert_true(configuration(copy, sizeof(copy), USB_HIGH, &f));
    assert_int_equal(f.kind, USB_OTHER);
    for (u32 run = 0; run < 20000; run++) {
        memcpy(copy, stick, sizeof(copy));
        copy[random_below(sizeof(copy))] = (u8)random_u64();
        if (configuration(copy, sizeof(copy), USB_HIGH, &f) &&
            f.kind == USB_STORAGE) {
            assert_in_range(f.endpoint, 1, 15);
            assert_in_range(f.out, 1, 15);
            assert_int_equal(f.packet, 512);
        }
    }
}

static void commands(void **state UNUSED)
{
    static const u8 expected[BOT_COMMAND_BYTES] = {
        0x55, 0x53, 0x42, 0x43, 7, 0,    0,    0,    0,    0x06, 0, 0,
        0x80, 0,    10,   0x28, 0, 0x12, 0x34, 0x56, 0x78, 0,    0, 3,
    };
    u8 wrapped[BOT_COMMAND_BYTES];
    struct scsi_command c = scsi_transfer(false, 0x12345678, 3, 512);
    bot_wrap(wrapped, 7, &c);
    assert_memory_equal(wrapped, expected, sizeof(expected));
    c = scsi_transfer(true, 1, 0xffff, 512);
    bot_wrap(wrapped, 7, &c);
    assert_int_equal(wrapped[12], 0);
    assert_int_equal(wrapped[15], 0x2a);
    assert_int_equal(wrapped[22] << 8 | wrapped[23], 0xffff);
    c = scsi_mode();
    bot_wrap(wrapped, 7, &c);
    assert_int_equal(wrapped[12], 0x80);
    assert_int_equal(wrapped[14], 6);
    assert_memory_equal(wrapped + 15, "\x1a\0\x3f\0\xc0\0", 6);
}

static void statuses(void **state UNUSED)
{
    const u8 good[BOT_STATUS_BYTES] = { 0x55, 0x53, 0x42, 0x53, 7, 0,
                                        0,    0,    16,   0,    0, 0 };
    u8 s[BOT_STATUS_BYTES];
    u32 residue;
    assert_int_equal(bot_unwrap(good, 13, 7, 16, &residue), BOT_GOOD);
    assert_int_equal(residue, 16);
    assert_int_equal(bot_unwrap(good, 12, 7, 16, &residue), BOT_BROKEN);
    assert_int_equal(bot_unwrap(good, 13, 8, 16, &residue), BOT_BROKEN);
    assert_int_equal(bot_unwrap(good, 13, 7, 15, &residue), BOT_BROKEN);
    memcpy(s, good, sizeof(s));
    s[12] = 1;
    assert_int_equal(bot_unwrap(s, 13, 7, 16, &residue), BOT_FAILED);
    for (u32 status = 2; status < 256; status++) {
        s[12] = (u8)status;
        assert_int_equal(bot_unwrap(s, 13, 7, 16, &residue), BOT_BROKEN);
    }
    memcpy(s, good, sizeof(s));
    s[3] = 0x43;
    assert_int_equal(bot_unwrap(s, 13, 7, 16, &residue), BOT_BROKEN);
}

static void answers(void **state UNUSED)
{
    u8 inquiry[SCSI_INQUIRY_BYTES + 1] = "\0\200\5\2\37\0\0\0"
                                         "Maker\1  A stick         1.0 ";
    static const u8 largest[8] = { 0xff, 0xff, 0xff, 0xfe, 0, 0, 2, 0 };
    static const u8 beyond[8] = { 0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0 };
    static const u8 sense[18] = { 0xf0, 0, 2, [12] = 0x3a };
    static const u8 protected[4] = { 3, 0, 0x80, 0 }, writable[4] = { 3, 0x80 };
    char name[SCSI_NAME_BYTES];
    u32 sectors, bytes;
    u8 additional;
    assert_true(scsi_parse_inquiry(inquiry, SCSI_INQUIRY_BYTES, name));
    assert_string_equal(name, "Maker? A stick");
    assert_false(scsi_parse_inquiry(inquiry, 35, name));
    memset(inquiry + 8, 'x', 24);
    assert_true(scsi_parse_inquiry(inquiry, SCSI_INQUIRY_BYTES, name));
    assert_int_equal(strlen(name), SCSI_NAME_BYTES - 1);
    inquiry[0] = 5; // a CD
    assert_false(scsi_parse_inquiry(inquiry, SCSI_INQUIRY_BYTES, name));
    assert_true(scsi_parse_capacity(largest, 8, &sectors, &bytes));
    assert_int_equal(sectors, 0xffffffff);
    assert_int_equal(bytes, 512);
    assert_false(scsi_parse_capacity(beyond, 8, &sectors, &bytes));
    assert_false(scsi_parse_capacity(largest, 7, &sectors, &bytes));
    assert_true(scsi_parse_protected(protected, 4));
    assert_true(scsi_parse_protected(protected, 3));
    assert_false(scsi_parse_protected(protected, 2));
    assert_false(scsi_parse_protected(writable, 4));
    assert_int_equal(scsi_parse_sense(sense, 18, &additional), SENSE_NOT_READY);
    assert_int_equal(additional, SENSE_NO_MEDIUM);
    assert_int_equal(scsi_parse_sense(sense, 2, &additional), SENSE_UNKNOWN);
    assert_int_equal(additional, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_descriptors),
        cmocka_unit_test(the_boot_keyboard_is_found_among_others),
        cmocka_unit_test(cut_descriptors_are_refused),
        cmocka_unit_test(damaged_descriptors),
        cmocka_unit_test(broken_fields),
        cmocka_unit_test(hubs),
        cmocka_unit_test(intervals),
        cmocka_unit_test(typing),
        cmocka_unit_test(requests),
        cmocka_unit_test(phantom_keys),
        cmocka_unit_test(repeated_keys),
        cmocka_unit_test(any_report),
        cmocka_unit_test(blocks_arrive_in_order),
        cmocka_unit_test(events_arrive_in_order),
        cmocka_unit_test(places),
        cmocka_unit_test(contexts),
        cmocka_unit_test(sticks),
        cmocka_unit_test(commands),
        cmocka_unit_test(statuses),
        cmocka_unit_test(answers),
    };
    random_init();
    return cmocka_run_group_tests_name("usb", tests, NULL, NULL);
}
