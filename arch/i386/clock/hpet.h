// The HPET's registers (IA-PC HPET specification 1.0a, 2.3), used by its clock
// and its timers.
#pragma once

#include "lib/types.h"

enum {
    HPET_CAPABILITIES = 0x00,
    HPET_PERIOD = 0x04,
    HPET_CONFIG = 0x10,
    HPET_COUNTER = 0xf0,
    HPET_COUNTER_HIGH = 0xf4,
};
#define HPET_LAST_TIMER(capabilities) ((capabilities) >> 8 & 0x1f)
#define HPET_COUNTER_64 (1u << 13) // in HPET_CAPABILITIES
#define HPET_ENABLE 1u
#define HPET_LEGACY_ROUTE 2u // takes the PIT's and the RTC's interrupt lines

// The registers of each timer, at these offsets:
#define HPET_TIMER(n) (0x100 + 0x20 * (n))
#define HPET_TIMER_ROUTES(n) (HPET_TIMER(n) + 0x04) // bits: usable lines
#define HPET_COMPARATOR(n) (HPET_TIMER(n) + 0x08)   // 64 bits
#define HPET_MESSAGE_DATA(n) (HPET_TIMER(n) + 0x10)
#define HPET_MESSAGE_ADDRESS(n) (HPET_TIMER(n) + 0x14)
#define HPET_TIMER_LEVEL (1u << 1)
#define HPET_TIMER_ON (1u << 2)
#define HPET_TIMER_PERIODIC (1u << 3)
#define HPET_TIMER_64 (1u << 5) // it is 64 bits wide
#define HPET_TIMER_32_MODE (1u << 8)
#define HPET_TIMER_LINE(gsi) ((gsi) << 9)
#define HPET_TIMER_LINES HPET_TIMER_LINE(0x1fu)
#define HPET_TIMER_MESSAGE (1u << 14)     // messages, not a line
#define HPET_TIMER_CAN_MESSAGE (1u << 15) // it supports messages

// Finds the HPET and starts its counter, on the first call. NULL, or why there
// is none.
const char *hpet_find(void);
u32 hpet_hz(void);
// Valid once it has been found. 32-bit accesses; any context.
extern volatile u32 *hpet_registers;
static ALWAYS_INLINE u32 hpet_read(u32 offset)
{
    return hpet_registers[offset / 4];
}
static ALWAYS_INLINE void hpet_write(u32 offset, u32 value)
{
    hpet_registers[offset / 4] = value;
}
