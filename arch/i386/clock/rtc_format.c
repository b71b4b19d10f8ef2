#include "arch/i386/clock/rtc_format.h"

#define HOUR_PM 0x80
#define PIVOT 70u // without a century, years from here on are 19xx
#define CENTURY_MIN 19u
#define INVALID 0xffu

static u32 decode(u8 value, u8 b)
{
    if (b & RTC_B_BINARY)
        return value;
    u32 tens = value >> 4, ones = value & 0xf;
    return tens > 9 || ones > 9 ? INVALID : tens * 10 + ones;
}

static u8 encode(u32 value, u8 b)
{
    return (u8)(b & RTC_B_BINARY ? value : (value / 10) << 4 | value % 10);
}

static u32 decode_hour(u8 value, u8 b)
{
    if (b & RTC_B_24_HOURS)
        return decode(value, b);
    u32 hour = decode(value & ~HOUR_PM, b);
    if (hour < 1 || hour > 12)
        return INVALID;
    return hour % 12 + (value & HOUR_PM ? 12 : 0);
}

static u8 encode_hour(u32 hour, u8 b)
{
    if (b & RTC_B_24_HOURS)
        return encode(hour, b);
    u8 value = encode(hour % 12 ? hour % 12 : 12, b);
    return value | (hour >= 12 ? HOUR_PM : 0);
}

// Ignores implausible values, which the register may hold after a battery
// failure.
static u32 century_of(const struct rtc_registers *r, u32 year)
{
    u32 century = r->century ? decode(r->century, r->b) : 0;
    if (century >= CENTURY_MIN && century <= DATE_YEAR_MAX / 100)
        return century;
    return year >= PIVOT ? 19 : 20;
}

bool rtc_decode(const struct rtc_registers *r, struct date *d)
{
    u32 year = decode(r->year, r->b);
    *d = (struct date){
        .year = year + 100 * century_of(r, year),
        .month = decode(r->month, r->b),
        .day = decode(r->day, r->b),
        .hour = decode_hour(r->hour, r->b),
        .minute = decode(r->minute, r->b),
        .second = decode(r->second, r->b),
    };
    return year < 100 && date_is_valid(d);
}

bool rtc_encode(const struct date *d, bool century, struct rtc_registers *r)
{
    if (!century && (d->year < 1900 + PIVOT || d->year >= 2000 + PIVOT))
        return false;
    u8 b = r->b;
    *r = (struct rtc_registers){
        .second = encode(d->second, b),
        .minute = encode(d->minute, b),
        .hour = encode_hour(d->hour, b),
        .weekday = (u8)(weekday_of(date_to_seconds(d)) + 1),
        .day = encode(d->day, b),
        .month = encode(d->month, b),
        .year = encode(d->year % 100, b),
        .century = century ? encode(d->year / 100, b) : 0,
        .b = b,
    };
    return true;
}

u8 rtc_second_after(u8 second, u32 later, u8 b)
{
    return encode((decode(second, b) + later) % 60, b);
}
