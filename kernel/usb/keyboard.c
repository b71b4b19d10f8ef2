// Boot keyboards (HID 1.11, 7.2 and appendix B): their reports become the codes
// of a PS/2 keyboard.
#include "kernel/base/keyboard.h"
#include "arch/clock.h"
#include "kernel/base/errno.h"
#include "kernel/mm/heap.h"
#include "kernel/usb/usb.h"

#define HID_SET_REPORT 0x09
#define HID_SET_IDLE 0x0a
#define HID_SET_PROTOCOL 0x0b
#define REPORT_OUTPUT 0x200
#define LED_NUM_LOCK 1
#define LED_CAPS_LOCK 2
#define LEDS_UNKNOWN 0xff

#define REPEAT_DELAY (500 * NSEC_PER_MSEC)
#define REPEAT_PERIOD (33 * NSEC_PER_MSEC)

struct keyboard {
    struct boot_keys keys;
    struct keymap map;
    u8 leds; // as last sent
};

static int request(struct usb_device *d, u8 number, u16 value, u8 *data, u16 n)
{
    struct usb_request r = {
        .type = REQUEST_CLASS | REQUEST_INTERFACE,
        .request = number,
        .value = value,
        .index = d->function.interface,
        .length = n,
    };
    return usb_control(d, &r, data);
}

// A keyboard that refuses SET_PROTOCOL may know no other one; one that refuses
// SET_IDLE repeats its reports, which changes nothing.
static int start(struct usb_device *d)
{
    struct keyboard *k = kzalloc(sizeof(*k));
    if (!k)
        return -ENOMEM;
    k->map.num_lock = true;
    k->leds = LEDS_UNKNOWN;
    d->data = k;
    int err = request(d, HID_SET_PROTOCOL, 0, NULL, 0);
    if (err && err != -EPIPE)
        return err;
    request(d, HID_SET_IDLE, 0, NULL, 0);
    d->work = true;
    return usb_start_reports(d);
}

static void type(struct keyboard *k, const u8 *codes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        keyboard_code(&k->map, codes[i]);
}

static u8 leds_of(const struct keyboard *k)
{
    return (k->map.num_lock ? LED_NUM_LOCK : 0) |
           (k->map.caps_lock ? LED_CAPS_LOCK : 0);
}

static void report(struct usb_device *d, const u8 *data, size_t n)
{
    struct keyboard *k = d->data;
    u8 codes[BOOT_CODES_MAX], last = k->keys.last;
    size_t count = boot_keys_report(&k->keys, data, n, codes);
    type(k, codes, count);
    if (!k->keys.last)
        d->deadline = WAIT_FOREVER;
    else if (k->keys.last != last)
        d->deadline = clock_now_ns() + REPEAT_DELAY;
    d->work |= leds_of(k) != k->leds;
}

static void repeat(struct usb_device *d)
{
    struct keyboard *k = d->data;
    u8 codes[BOOT_CODES_MAX];
    type(k, codes, boot_keys_repeat(&k->keys, codes));
    d->deadline = clock_now_ns() + REPEAT_PERIOD;
}

static void show_leds(struct usb_device *d)
{
    struct keyboard *k = d->data;
    if (leds_of(k) == k->leds)
        return;
    k->leds = leds_of(k);
    u8 leds = k->leds;
    request(d, HID_SET_REPORT, REPORT_OUTPUT, &leds, sizeof(leds));
}

static void stop(struct usb_device *d)
{
    d->deadline = WAIT_FOREVER;
    kfree(d->data);
    d->data = NULL;
}

const struct usb_driver usb_keyboard = {
    .name = "keyboard",
    .start = start,
    .report = report,
    .work = show_leds,
    .timeout = repeat,
    .stop = stop,
};
