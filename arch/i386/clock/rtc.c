// The wall clock in the MC146818-compatible RTC, taken as UTC.
//
// `rtc_lock`, a spinlock held for up to some milliseconds with interrupts on,
// excludes readers while the date is written: both need several CMOS accesses.
// The periodic interrupt (rtc_timer.c) continues to be served.
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/clock/rtc_format.h"
#include "kernel/base/errno.h"
#include "kernel/sync/spinlock.h"
#include "lib/string.h"

#define UPDATE_LIMIT_NS (10 * NSEC_PER_MSEC) // an update takes at most 2 ms
#define READ_ATTEMPTS 8

static struct spinlock rtc_lock = SPINLOCK_INIT("rtc");

static void wait_for_update(void)
{
    spin_assert_held(&rtc_lock);
    u64 limit = clock_now_ns() + UPDATE_LIMIT_NS;
    while (cmos_read(RTC_A) & RTC_A_UPDATING && clock_now_ns() < limit)
        cpu_relax();
}

static struct rtc_registers read_registers(void)
{
    spin_assert_held(&rtc_lock);
    wait_for_update();
    struct rtc_registers r = {
        .second = cmos_read(RTC_SECONDS),
        .minute = cmos_read(RTC_MINUTES),
        .hour = cmos_read(RTC_HOURS),
        .day = cmos_read(RTC_DAY),
        .month = cmos_read(RTC_MONTH),
        .year = cmos_read(RTC_YEAR),
        .b = cmos_read(RTC_B),
    };
    if (acpi_info.century)
        r.century = cmos_read(acpi_info.century);
    return r;
}

// The chip may start an update between two accesses (if an interrupt is taken):
// a date is accepted when two reads agree.
static struct rtc_registers read_stable(void)
{
    struct rtc_registers r = read_registers(), again = read_registers();
    for (u32 i = 0; i < READ_ATTEMPTS && memcmp(&r, &again, sizeof(r)); i++) {
        r = again;
        again = read_registers();
    }
    return again;
}

s64 rtc_read_seconds(void)
{
    struct date d;
    spin_lock(&rtc_lock);
    struct rtc_registers r = read_stable();
    spin_unlock(&rtc_lock);
    return rtc_decode(&r, &d) ? date_to_seconds(&d) : 0;
}

// Waits for the end of an update first: setting RTC_B_SET aborts an update, but
// not on every chip. Bochs completes it, and overwrites registers that have not
// been written yet with the old date.
static void write_registers(const struct rtc_registers *r)
{
    spin_assert_held(&rtc_lock);
    wait_for_update();
    cmos_change(RTC_B, RTC_B_SET, RTC_B_SET);
    cmos_write(RTC_SECONDS, r->second);
    cmos_write(RTC_MINUTES, r->minute);
    cmos_write(RTC_HOURS, r->hour);
    cmos_write(RTC_WEEKDAY, r->weekday);
    cmos_write(RTC_DAY, r->day);
    cmos_write(RTC_MONTH, r->month);
    cmos_write(RTC_YEAR, r->year);
    if (acpi_info.century)
        cmos_write(acpi_info.century, r->century);
    cmos_change(RTC_B, RTC_B_SET, 0);
}

int rtc_write_seconds(s64 seconds)
{
    struct date d;
    if (!seconds_to_date(seconds, &d))
        return -EINVAL;
    spin_lock(&rtc_lock);
    struct rtc_registers r = { .b = cmos_read(RTC_B) };
    bool known = rtc_encode(&d, acpi_info.century, &r);
    if (known)
        write_registers(&r);
    spin_unlock(&rtc_lock);
    return known ? 0 : -EINVAL;
}
