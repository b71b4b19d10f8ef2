// The 8254 timer: counter 2 as a reference, counter 0 as the one-shot timer of
// machines without APIC. One CPU uses it at a time, with interrupts off.
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/dev/port.h"

#define COUNTER_0 0x40
#define COUNTER_2 0x42
#define COMMAND 0x43
#define SPEAKER 0x61 // the gate of counter 2

#define SELECT(counter) ((counter) << 6)
#define LATCH 0x00
#define LOW_THEN_HIGH 0x30
#define MODE_ONE_SHOT 0x00 // 0: interrupt on terminal count
#define MODE_RATE 0x04     // 2: counts down for ever
#define SPEAKER_GATE 0x01
#define SPEAKER_ON 0x02

static u32 pit_read(void)
{
    out8(COMMAND, SELECT(2) | LATCH);
    u32 low = in8(COUNTER_2);
    return -(low | (u32)in8(COUNTER_2) << 8); // it counts down
}

static const struct reference pit = {
    .name = "PIT",
    .hz = PIT_HZ,
    .mask = 0xffff,
    .read = pit_read,
};

const struct reference *pit_reference(void)
{
    u8 speaker = in8(SPEAKER);
    out8(SPEAKER, (u8)((speaker | SPEAKER_GATE) & ~SPEAKER_ON));
    out8(COMMAND, SELECT(2) | LOW_THEN_HIGH | MODE_RATE);
    out8(COUNTER_2, 0); // 65536
    out8(COUNTER_2, 0);
    return &pit;
}

void pit_start(u32 ticks)
{
    out8(COMMAND, SELECT(0) | LOW_THEN_HIGH | MODE_ONE_SHOT);
    out8(COUNTER_0, ticks & 0xff);
    out8(COUNTER_0, (u8)(ticks >> 8));
}

void pit_stop(void)
{
    // Without a count it does not start.
    out8(COMMAND, SELECT(0) | LOW_THEN_HIGH | MODE_ONE_SHOT);
}
