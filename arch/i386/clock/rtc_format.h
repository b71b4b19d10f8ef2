// The date format of the RTC's registers: BCD or binary, 12 or 24 hours, with
// or without a century (MC146818 data sheet).
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
#define RTC_A_UPDATING 0x80 // an update is in progress: the date is unreadable
#define RTC_A_RATE 0x0f     // of the periodic interrupt
#define RTC_B_SET 0x80      // the date does not advance
#define RTC_B_INTERRUPTS 0x70
#define RTC_B_PERIODIC 0x40
#define RTC_B_ALARM 0x20
#define RTC_B_BINARY 0x04
#define RTC_B_24_HOURS 0x02

#define RTC_ALARM_ANY 0xc0 // in an alarm register: matches any value

struct rtc_registers {
    u8 second, minute, hour, weekday, day, month, year;
    u8 century; // 0: the chip has none
    u8 b;       // register B: the format
};

// False: the values are invalid, such as those of an absent or dead chip.
// Without a century, two-digit years are 1970 to 2069.
bool rtc_decode(const struct rtc_registers *r, struct date *d);
// `r->b` is given, all other members are set. False: the year needs a century
// and there is none.
bool rtc_encode(const struct date *d, bool century, struct rtc_registers *r);
// The value of the seconds register `later` seconds after it is `second`, in
// the format that register B, `b`, selects.
u8 rtc_second_after(u8 second, u32 later, u8 b);
