// Structures that arguments point to, as words. Each function returns the size
// in bytes.
#include "values.h"

#include <arpa/inet.h>
#include <signal.h>
#include <string.h>

#include <strobe/sensor.h>

static uint32_t random_words(struct draw *d, uint32_t *at, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        at[i] = draw_word(d) >> PICK(d, 0, 16, 24, 28, 31);
    return words * 4;
}

static void put_time(struct draw *d, uint32_t *at)
{
    at[0] = draw_below(d, 64) ? 0 : draw_word(d);
    at[1] = draw_below(d, 16) ? draw_below(d, 300000) : draw_word(d);
}

// In the layout of time32 or time64.
static uint32_t put_times(struct draw *d, uint32_t *at, uint32_t count)
{
    uint32_t wide = 1 + draw_below(d, 2);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t t[2];
        put_time(d, t);
        at[2 * i * wide] = t[0];
        if (wide == 2)
            at[4 * i + 1] = at[4 * i + 3] = 0;
        at[2 * i * wide + wide] = t[1];
    }
    return 8 * count * wide;
}

static uint32_t put_iovec(struct worker *w, struct draw *d, uint32_t *at)
{
    for (uint32_t i = 0; i < 8; i++) {
        at[2 * i] = buffer(w, d);
        at[2 * i + 1] = PICK(d, 0, 1, 7, 100, PAGE, 5000, 3 * PAGE,
                             draw_below(d, 16) ? 64 : 0xffffffffu);
    }
    return 64;
}

static void on_signal(int signal)
{
    (void)signal;
}

static uint32_t put_action(struct draw *d, uint32_t *at)
{
    at[0] =
        PICK(d, 0, 1, (uint32_t)on_signal, (uint32_t)on_signal, bad_address(d));
    at[1] = 0;
    for (uint32_t n = draw_below(d, 4); n > 0; n--)
        at[1] |=
            PICK(d, 1, 2, 4, 0x08000000, 0x10000000, 0x40000000, 0x80000000);
    at[2] = 0; // no restorer: the kernel's own
    at[3] = draw_below(d, 2) ? 0 : draw_word(d);
    at[4] = draw_below(d, 2) ? 0 : draw_word(d);
    return 20;
}

static uint32_t put_stack(struct worker *w, struct draw *d, uint32_t *at)
{
    at[0] = buffer(w, d);
    at[1] = PICK(d, 0, 0, 2, 1, 0x80000000);
    at[2] = PICK(d, 2 * PAGE, 8 * PAGE, 100, 0, 0xffffffff);
    return 12;
}

static uint32_t put_polls(struct worker *w, struct draw *d, uint32_t *at)
{
    for (uint32_t i = 0; i < 8; i++) {
        at[2 * i] = descriptor(w, d);
        at[2 * i + 1] = draw_word(d) & 0x3f;
    }
    return 64;
}

static uint32_t put_sets(struct worker *w, struct draw *d, uint32_t *at)
{
    memset(at, 0, 128);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t fd = descriptor(w, d);
        if (fd < 1024)
            at[fd / 32] |= 1u << fd % 32;
    }
    return 128;
}
static uint32_t put_arguments(struct worker *w, struct draw *d, uint32_t *at)
{
    uint32_t count = draw_below(d, 5);
    for (uint32_t i = 0; i < count; i++)
        at[i] = draw_below(d, 8) ? (uint32_t) "argument" : buffer(w, d);
    at[count] = 0;
    return 4 * count + 4;
}

static uint32_t put_lock(struct draw *d, uint32_t *at)
{
    uint16_t *half = (uint16_t *)at;
    memset(at, 0, 32);
    half[0] = (uint16_t)draw_below(d, 4); // type
    half[1] = (uint16_t)draw_below(d, 3); // whence
    at[1] = draw_below(d, 8) ? draw_below(d, 100) : draw_word(d);
    at[draw_below(d, 2) ? 2 : 3] = draw_below(d, 100);
    return 24;
}

static uint32_t put_limit(struct draw *d, uint32_t *at)
{
    static const uint32_t limits[] = { 0xffffffff, 0xffffffff, 1 << 20, 1 << 23,
                                       1024,       32,         0,       16 };
    for (uint32_t i = 0; i < 4; i++)
        at[i] = pick(d, limits, 8);
    return draw_below(d, 2) ? 8 : 16;
}

static uint32_t put_mapping(struct worker *w, struct draw *d, uint32_t *at)
{
    at[0] = draw_below(d, 2) ? 0 : in_arena(d);
    at[1] = PICK(d, PAGE, 2 * PAGE, 5000, 16 * PAGE);
    at[2] = draw_below(d, 8);
    at[3] = PICK(d, 0x22, 0x21, 0x32, 0x31, 1, 2, 0x11, 0x12);
    at[4] = descriptor(w, d);
    at[5] = PICK(d, 0, 0, PAGE, 1);
    return 24;
}

static uint32_t put_select(struct worker *w, struct draw *d, uint32_t *at)
{
    at[0] = PICK(d, 0, 1, 16, 64, 1024);
    for (uint32_t i = 1; i < 4; i++) {
        uint32_t *set = at + 32 * i;
        put_sets(w, d, set);
        at[i] = draw_below(d, 4) ? (uint32_t)set : 0;
    }
    at[4] = (uint32_t)(at + 8);
    put_time(d, at + 8);
    return 20;
}

static uint32_t put_descriptor(struct draw *d, uint32_t *at)
{
    at[0] = PICK(d, -1, 0, 6, 7, 8, 12);
    at[1] = draw_word(d);
    at[2] = draw_below(d, 2) ? 0xfffff : draw_word(d);
    at[3] = draw_below(d, 2) ? 0x51 : draw_below(d, 256);
    return 16;
}

static uint32_t put_event(struct draw *d, uint32_t *at)
{
    memset(at, 0, 64);
    at[0] = draw_word(d);
    at[1] = draw_below(d, 66);
    at[2] = PICK(d, 0, 1, 2, 4, 9);
    at[3] = own_lane->progress[draw_below(d, WORKERS)].tid;
    return 64;
}

static uint32_t put_address(struct draw *d, uint32_t *at)
{
    uint16_t *half = (uint16_t *)at;
    memset(at, 0, 16);
    half[0] = (uint16_t)(draw_below(d, 16) ? 2 : draw_below(d, 12)); // AF_INET
    half[1] = htons((uint16_t)PICK(d, PORT, PORT, PORT + 1, 0, 1, 67, 68));
    at[1] = htonl(PICK(d, 0x7f000001, 0x7f000001, 0x7f000001, 0, 0x7f000002,
                       0x0a00020f, 0xffffffff, 0xe0000001));
    return 16;
}

static uint32_t put_message(struct worker *w, struct draw *d, uint32_t *at)
{
    uint32_t *address = at + 8, *parts = at + 12;
    memset(at, 0, 32);
    put_address(d, address);
    put_iovec(w, d, parts);
    at[0] = draw_below(d, 4) ? (uint32_t)address : 0;
    at[1] = PICK(d, 16, 16, 0, 8, 128);
    at[2] = (uint32_t)parts;
    at[3] = PICK(d, 0, 1, 2, 8, 1025);
    at[4] = draw_below(d, 8) ? 0 : buffer(w, d); // ancillary data
    at[5] = draw_below(d, 8) ? 0 : draw_below(d, 64);
    return 28;
}

static struct sensor_axis some_axis(struct draw *d)
{
    return (struct sensor_axis){ draw_below(d, 3), draw_below(d, 8),
                                 draw_below(d, 8), 1u << draw_below(d, 32) };
}

static uint32_t put_sensor(struct draw *d, uint32_t *at)
{
    struct sensor_request *r = (struct sensor_request *)at;
    memset(r, 0, sizeof(*r));
    r->layout.type = draw_below(d, SENSOR_TYPES + 1);
    if (r->layout.type == SENSOR_HISTOGRAM) {
        struct sensor_histogram_layout *h = &r->layout.histogram;
        h->lanes = draw_below(d, 10);
        h->layers = draw_below(d, 4);
        h->x = some_axis(d);
        h->y = draw_below(d, 2) ? some_axis(d) : h->y;
    } else {
        r->layout.words[0] = draw_below(d, 2) << draw_below(d, 32);
        r->layout.words[1] = 32u << draw_below(d, 4);
    }
    r->text_bytes = draw_below(d, 3) * draw_below(d, 2000);
    r->text = (const char *)ARENA;
    return sizeof(*r);
}

uint32_t put_structure(struct worker *w, struct draw *d, uint32_t kind,
                       uint32_t *at)
{
    switch (kind) {
    case TOKEN_path:
    case TOKEN_node:
    case TOKEN_filesystem:
    case TOKEN_text:
    case TOKEN_disk:
        return put_string(w, d, kind, at);
    case TOKEN_zeros:
        memset(at, 0, 64);
        return 64;
    case TOKEN_iovec:
        return put_iovec(w, d, at);
    case TOKEN_time:
        return put_times(d, at, 1 + draw_below(d, 2));
    case TOKEN_interval:
        return put_times(d, at, 2);
    case TOKEN_signals:
        return random_words(d, at, 2);
    case TOKEN_action:
        return put_action(d, at);
    case TOKEN_event:
        return put_event(d, at);
    case TOKEN_stack:
        return put_stack(w, d, at);
    case TOKEN_polls:
        return put_polls(w, d, at);
    case TOKEN_sets:
        return put_sets(w, d, at);
    case TOKEN_call:
        return put_call(w, d, at);
    case TOKEN_arguments:
        return put_arguments(w, d, at);
    case TOKEN_lock:
        return put_lock(d, at);
    case TOKEN_limit:
        return put_limit(d, at);
    case TOKEN_mapping:
        return put_mapping(w, d, at);
    case TOKEN_select:
        return put_select(w, d, at);
    case TOKEN_descriptor:
        return put_descriptor(d, at);
    case TOKEN_address:
        return put_address(d, at);
    case TOKEN_message:
        return put_message(w, d, at);
    case TOKEN_request:
        return draw_below(d, 2) ? put_sensor(d, at) : random_words(d, at, 32);
    default:
        return random_words(d, at, kind == TOKEN_words ? 16 : 32);
    }
}
