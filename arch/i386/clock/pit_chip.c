// The registers of the interval timer: an 8254 (Intel data sheet 231164), an
// 8253 (Intel data sheet 231306), or an emulator's chip.
//
// Only the 8254 has the read-back command. It latches several counters at one
// instant, and it tells whether a counter has loaded its count and the level of
// its output. An 8253 ignores the command, and the bytes that are then read are
// halves of a moving count, which look like counts. So the command is tried
// before it is used; without it, each counter is latched by its own command.
//
// A count is written and read in two halves, so all functions are called
// between pit_enter and pit_leave (pit.c).
#include "arch/i386/clock/pit_chip.h"
#include "arch/i386/dev/port.h"

#define COUNTER(n) ((u16)(0x40 + (n)))
#define COMMAND 0x43

#define SELECT(counter) ((counter) << 6)
#define LATCH 0x00 // counter latch command
#define LOW_THEN_HIGH 0x30
#define MODE(mode) ((mode) << 1)
#define READ_BACK 0xc0
#define NO_COUNT 0x20  // in a read-back command: do not latch counts
#define NO_STATUS 0x10 // in a read-back command: do not latch statuses
#define READ_BACK_COUNTER(n) (2u << (n))
#define STATUS_NULL_COUNT 0x40
#define STATUS_OUT 0x80
#define STATUS_PROGRAMMED 0x3f // bits 5-0 of the last control word

#define READS_MAX 100000u // limit, for a counter that does not count

// A read of a count takes three accesses, of a microsecond each on a chip; a
// count is loaded at the next tick of the clock after it is written.
#define READS_TO_LOAD 2u

// The low halves of this count and of the next 40 ones below it differ from the
// statuses of both modes.
#define STATUS_TRIALS 4u
#define STATUS_COUNT 0xff2fu

// Steps of a counter between two readings, to distinguish a count from noise.
#define STEPS 8u
#define STEPS_LONG_MAX 2u // this CPU may not have run between two readings

static bool has_read_back;

static void command(u32 value)
{
    out8(COMMAND, (u8)value);
}

void pit_load(u32 counter, u32 mode, u32 count)
{
    command(SELECT(counter) | LOW_THEN_HIGH | MODE(mode));
    pit_load_again(counter, count);
}

NOTRACE void pit_load_again(u32 counter, u32 count)
{
    out8(COUNTER(counter), count & 0xff); // 65536 is written as 0
    out8(COUNTER(counter), (u8)(count >> 8));
}

// A counter without a count does not run.
void pit_halt(u32 counter)
{
    command(SELECT(counter) | LOW_THEN_HIGH | MODE(PIT_ONE_SHOT));
}

static u32 status(u32 counter)
{
    command(READ_BACK | NO_COUNT | READ_BACK_COUNTER(counter));
    return in8(COUNTER(counter));
}

// Whether the status of a counter, running in this mode, repeats its control
// word.
static bool has_status(u32 counter, u32 mode)
{
    pit_load(counter, mode, STATUS_COUNT);
    u32 programmed = LOW_THEN_HIGH | MODE(mode);
    return (status(counter) & STATUS_PROGRAMMED) == programmed;
}

void pit_identify(u32 counter)
{
    has_read_back = true;
    for (u32 i = 0; i < STATUS_TRIALS; i++)
        has_read_back &= has_status(counter, i % 2 ? PIT_RATE : PIT_ONE_SHOT);
    pit_halt(counter); // ends a read that is half done
}

NOTRACE bool pit_has_read_back(void)
{
    return has_read_back;
}

NOTRACE void pit_latch(u32 counters)
{
    if (has_read_back) {
        command(READ_BACK | NO_STATUS | counters << 1);
        return;
    }
    for (u32 counter = 0; counters >> counter; counter++) {
        if (counters >> counter & 1)
            command(SELECT(counter) | LATCH);
    }
}

NOTRACE u16 pit_read_latched(u32 counter)
{
    u8 low = in8(COUNTER(counter));
    return (u16)(low | in8(COUNTER(counter)) << 8);
}

NOTRACE u16 pit_read(u32 counter)
{
    pit_latch(1u << counter);
    return pit_read_latched(counter);
}

void pit_wait_loaded(u32 counter)
{
    if (!has_read_back) {
        for (u32 i = 0; i < READS_TO_LOAD; i++)
            pit_read(counter);
        return;
    }
    u32 reads = 0;
    while (reads < READS_MAX && status(counter) & STATUS_NULL_COUNT)
        reads++;
}

NOTRACE bool pit_ended(u32 counter, u32 count)
{
    if (has_read_back)
        return status(counter) & STATUS_OUT;
    u32 left = pit_read(counter);
    return left == 0 || left > count;
}

// Ticks until the count changes; 0: it does not.
static u32 next_step(u32 counter, u32 count)
{
    u32 first = pit_read(counter), now = first;
    for (u32 i = 0; i < READS_MAX && now == first; i++)
        now = pit_read(counter);
    return (first + count - now) % count;
}

const char *pit_why_no_count(u32 counter, u32 count)
{
    u32 longer = 0;
    for (u32 i = 0; i < STEPS; i++) {
        u32 step = next_step(counter, count);
        if (!step)
            return "it does not count";
        longer += step > count / 16;
    }
    return longer > STEPS_LONG_MAX ? "its counts are noise" : NULL;
}
