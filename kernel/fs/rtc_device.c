// /dev/rtc0 and /dev/rtc: the real-time clock, for hwclock (rtc(4)). Its
// periodic interrupts belong to the timer registry. Everybody may read the
// clock; only root may set it, through a descriptor of any mode, as on Linux.

#include "arch/clock.h"
#include "arch/mmu.h"
#include "kernel/base/errno.h"
#include "kernel/fs/devfs.h"
#include "kernel/task/task.h"
#include "lib/date.h"
#include "lib/set.h"

#define RTC_RD_TIME 0x80247009u
#define RTC_SET_TIME 0x4024700au

#define MISC_MAJOR 10
#define MISC_RTC 135
#define RTC_MAJOR 254

// struct rtc_time (Linux, uapi/linux/rtc.h).
struct rtc_time {
    s32 sec, min, hour, mday;
    s32 mon;  // 0 to 11
    s32 year; // since 1900
    s32 wday, yday, isdst;
};

static int read_time(u32 arg)
{
    struct date d;
    s64 seconds = rtc_read_seconds();
    if (!seconds || !seconds_to_date(seconds, &d))
        return -EINVAL; // the chip has no valid date
    struct rtc_time t = {
        .sec = (s32)d.second,
        .min = (s32)d.minute,
        .hour = (s32)d.hour,
        .mday = (s32)d.day,
        .mon = (s32)d.month - 1,
        .year = (s32)d.year - 1900,
        .wday = (s32)weekday_of(seconds),
        .yday = (s32)day_of_year(&d),
    };
    return copy_to_user(arg, &t, sizeof(t)) ? -EFAULT : 0;
}

static int set_time(u32 arg)
{
    struct rtc_time t;
    if (!is_root())
        return -EACCES;
    if (copy_from_user(&t, arg, sizeof(t)))
        return -EFAULT;
    struct date d = {
        .year = (u32)t.year + 1900,
        .month = (u32)t.mon + 1,
        .day = (u32)t.mday,
        .hour = (u32)t.hour,
        .minute = (u32)t.min,
        .second = (u32)t.sec,
    };
    return date_is_valid(&d) ? rtc_write_seconds(date_to_seconds(&d)) : -EINVAL;
}

static int rtc_ioctl(struct file *f UNUSED, u32 cmd, u32 arg)
{
    switch (cmd) {
    case RTC_RD_TIME:
        return read_time(arg);
    case RTC_SET_TIME:
        return set_time(arg);
    default:
        return -ENOTTY;
    }
}

static const struct file_ops rtc_ops = { .ioctl = rtc_ioctl };

#define RTC_DEVICE(id, number)             \
    static const struct char_device id = { \
        .name = #id,                       \
        .rdev = number,                    \
        .mode = 0644,                      \
        .ops = &rtc_ops,                   \
    };                                     \
    CHAR_DEVICE(id)
RTC_DEVICE(rtc, DEVICE_NUMBER(MISC_MAJOR, MISC_RTC));
RTC_DEVICE(rtc0, DEVICE_NUMBER(RTC_MAJOR, 0));
