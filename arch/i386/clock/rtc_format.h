// How the RTC's registers write a date: in BCD or binary, with 12 or 24 hours,
// with a century or without (MC146818 data sheet).
#pragma once

#include "lib/date.h"

enum {
    RTC_SECONDS = 0x00,
    RTC_SECONDS_ALARM = 0x01,
    RTC_MINUTES = 0x02,
    RTC_MINUTES_ALARM = 0x03,
    RTC_HOURS = 0x04,
    RTC_HOURS_ALARM = 0x05,
    RTC_WEEKDAY = 0x06,
    RTC_DAY = 0x07,
    RTC_MONTH = 0x08,
    RTC_YEAR = 0x09,
    RTC_A = 0x0a,
    RTC_B = 0x0b,
};
#define RTC_A_UPDATING 0x80 // the date is not readable
#define RTC_A_RATE 0x0f     // of the periodic interrupt
#define RTC_B_SET 0x80      // the date stands still
#define RTC_B_INTERRUPTS 0x70
#define RTC_B_PERIODIC 0x40
#define RTC_B_ALARM 0x20
#define RTC_B_BINARY 0x04
#define RTC_B_24_HOURS 0x02

#define RTC_ALARM_ANY 0xc0 // of an alarm's register: whatever the time has

struct rtc_registers {
    u8 second, minute, hour, weekday, day, month, year;
    u8 century; // 0: the chip has none
    u8 b;       // register B: the format
};

// False: what an absent or dead chip gives, and other nonsense. Two digits of a
// year without century are of 1970 to 2069.
bool rtc_decode(const struct rtc_registers *r, struct date *d);
// `r->b` is given, all others are set. False: without a century the year cannot
// be told.
bool rtc_encode(const struct date *d, bool century, struct rtc_registers *r);
// What the register of seconds holds `later` seconds after `second`, with `b`
// in register B.
u8 rtc_second_after(u8 second, u32 later, u8 b);
