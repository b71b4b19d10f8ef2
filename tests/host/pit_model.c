// See pit_model.h.
#include "pit_model.h"

#include <string.h>

struct counter {
    u32 control; // bits 5-0 of the control word
    u32 reload;  // 0: no count has been written
    u64 loaded;  // when
    u32 low;     // the first half that was written
    bool second_write, second_read;
    u32 latched_bytes; // to be read
    u16 latched;
    bool status_latched;
    u8 status;
};

static enum pit_kind kind;
static struct counter counters[3];
static u64 now, latched_at;
static u32 noise;

void pit_model_init(enum pit_kind k)
{
    kind = k;
    memset(counters, 0, sizeof(counters));
    now = 1000;
    noise = 1;
}

u64 pit_model_time(void)
{
    return now;
}

void pit_model_pass(u64 ticks)
{
    now += ticks;
}

u64 pit_model_latched_at(void)
{
    return latched_at;
}

static bool one_shot(const struct counter *c)
{
    return (c->control >> 1 & 7) == 0;
}

static bool ended(const struct counter *c)
{
    return c->reload && now - c->loaded >= c->reload;
}

static u16 count(const struct counter *c)
{
    if (kind == PIT_NOISE) {
        noise = noise * 1664525 + 1013904223;
        return (u16)(noise >> 16);
    }
    if (!c->reload)
        return 0;
    u64 passed = now - c->loaded;
    if (!one_shot(c))
        return (u16)(c->reload - passed % c->reload);
    if (kind == PIT_V86 && ended(c)) // it stops at zero
        return 0;
    return (u16)(c->reload - passed); // it goes on after 65536
}

static void latch(struct counter *c)
{
    latched_at = now;
    if (c->latched_bytes)
        return;
    c->latched = count(c);
    c->latched_bytes = 2;
}

static void latch_status(struct counter *c)
{
    bool out = one_shot(c) ? ended(c) : true;
    c->status = (u8)((out ? 0x80 : 0) | (c->reload ? 0 : 0x40) | c->control);
    c->status_latched = true;
}

static void read_back(u8 value)
{
    if (kind == PIT_8253 || kind == PIT_V86 || kind == PIT_NOISE)
        return; // no such command
    for (u32 i = 0; i < 3; i++) {
        if (!(value & 2u << i))
            continue;
        if (!(value & 0x20))
            latch(&counters[i]);
        if (!(value & 0x10))
            latch_status(&counters[i]);
    }
}

static void control(u8 value)
{
    if (value >> 6 == 3) {
        read_back(value);
        return;
    }
    struct counter *c = &counters[value >> 6];
    if (!(value & 0x30)) {
        latch(c);
        return;
    }
    *c = (struct counter){ .control = value & 0x3f };
}

static void write_count(struct counter *c, u8 value)
{
    c->second_write = !c->second_write;
    if (c->second_write) {
        c->low = value;
        c->reload = 0;
        return;
    }
    u32 written = c->low | (u32)value << 8;
    c->reload = written ? written : 65536;
    c->loaded = now;
}

static u8 read_count(struct counter *c)
{
    if (c->status_latched) {
        c->status_latched = false;
        return c->status;
    }
    if (c->latched_bytes)
        return c->latched_bytes-- == 2 ? (u8)c->latched : (u8)(c->latched >> 8);
    // v86 returns the low half each time, the chips both in turn.
    bool high = kind != PIT_V86 && c->second_read;
    c->second_read = !c->second_read;
    return high ? (u8)(count(c) >> 8) : (u8)count(c);
}

u8 pit_model_read(u16 port)
{
    now++;
    return kind == PIT_ABSENT ? 0xff : read_count(&counters[port & 3]);
}

void pit_model_write(u16 port, u8 value)
{
    now++;
    if (kind == PIT_ABSENT)
        return;
    if (port == 0x43)
        control(value);
    else
        write_count(&counters[port & 3], value);
}
