// See clock_rates.h.
#include "clock_rates.h"
#include "strobe.h"
#include "sysinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define READINGS "system.clock.readings"
#define RTC_RD_TIME 0x80247009
#define RTC_TIME_BYTES 36

// Quartz clocks of PCs differ by less than 100 ppm; software emulates some.
#define TOLERANCE_PPM 300.0
#define RTC_WAIT_S 3
#define RTC_JITTERS 3.0
#define RTC_REST_MS 900 // of the second that is measured, without polling

static uint64_t read_tsc(void)
{
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

static void sleep_ms(uint32_t ms)
{
    struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

// ---- counters

static double middle(const struct sysinfo_reading *r)
{
    return (r->after - r->before) / 2.0;
}

// TSC cycles from the middle of `a` to that of `b`.
static double elapsed(const struct sysinfo_reading *a,
                      const struct sysinfo_reading *b)
{
    return (double)(b->before - a->before) + middle(b) - middle(a);
}

static void compare(const struct sysinfo_reading *a,
                    const struct sysinfo_reading *b, double tsc_hz,
                    struct clock_rate *rate)
{
    double cycles = elapsed(a, b);
    double ticks = (double)((b->value - a->value) & a->mask);
    double expected = cycles * a->frequency / tsc_hz;

    memcpy(rate->name, a->name, sizeof(rate->name));
    rate->ppm = (ticks / expected - 1) * 1e6;
    rate->uncertain_ppm =
        (middle(a) + middle(b)) / cycles * 1e6 + 1e6 / expected;
    if (strcmp(rate->name, "tsc") == 0)
        rate->ppm = 0; // what remains is the time of reading
}

static const struct sysinfo_reading *find(const struct sysinfo_reading *list,
                                          size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    }
    return NULL;
}

static int compare_all(struct clock_rate *rates, uint32_t ms, double tsc_hz)
{
    size_t before, after;
    struct sysinfo_reading *a = sysinfo_read_reading(READINGS, &before);
    int count = 0;

    if (!a)
        return -1;
    sleep_ms(ms);
    struct sysinfo_reading *b = sysinfo_read_reading(READINGS, &after);
    for (size_t i = 0; b && i < before && count < CLOCK_RATES_MAX - 1; i++) {
        const struct sysinfo_reading *later = find(b, after, a[i].name);
        if (later)
            compare(&a[i], later, tsc_hz, &rates[count++]);
    }
    free(a);
    free(b);
    return b ? count : -1;
}

// ---- the RTC

static int read_second(int fd)
{
    int fields[RTC_TIME_BYTES / sizeof(int)];

    return ioctl(fd, RTC_RD_TIME, fields) < 0 ? -1 : fields[0];
}

// Waits until the second changes, which happens between the two instants.
static bool next_second(int fd, double tsc_hz, uint64_t *before,
                        uint64_t *after)
{
    uint64_t start = read_tsc();
    int first = read_second(fd), now = first;

    for (*after = start; now == first && now >= 0;) {
        *before = *after;
        now = read_second(fd);
        *after = read_tsc();
        if ((double)(*after - start) > RTC_WAIT_S * tsc_hz)
            return false;
    }
    return now >= 0;
}

// Three changes of the second. A chip, or an emulator, that shows them late is
// uncertain by several times the difference of the two seconds: v86 shows one
// up to 40 ms late.
static bool measure_rtc(int fd, double tsc_hz, struct clock_rate *rate)
{
    double at[3], width[3];

    for (int i = 0; i < 3; i++) {
        uint64_t before = 0, after = 0;
        if (i > 0)
            sleep_ms(RTC_REST_MS);
        if (!next_second(fd, tsc_hz, &before, &after))
            return false;
        width[i] = (double)(after - before);
        at[i] = (double)before + width[i] / 2;
    }
    double cycles = at[2] - at[0], seconds = round(cycles / tsc_hz);
    double jitter = fabs((at[2] - at[1]) - (at[1] - at[0]));
    strcpy(rate->name, "rtc");
    rate->ppm = (fmax(seconds, 1) * tsc_hz / cycles - 1) * 1e6;
    rate->uncertain_ppm =
        ((width[0] + width[2]) / 2 + RTC_JITTERS * jitter) / cycles * 1e6;
    return true;
}

static bool rtc_rate(double tsc_hz, struct clock_rate *rate)
{
    int fd = open("/dev/rtc0", O_RDONLY | O_CLOEXEC);
    bool measured = fd >= 0 && measure_rtc(fd, tsc_hz, rate);

    if (fd >= 0)
        close(fd);
    return measured;
}

// ---- all

static bool agree(const struct clock_rate *a, const struct clock_rate *b)
{
    return fabs(a->ppm - b->ppm) <=
           TOLERANCE_PPM + a->uncertain_ppm + b->uncertain_ppm;
}

static void find_disputed(struct clock_rate *rates, int count)
{
    for (int i = 0; i < count; i++) {
        bool agreed = count == 1;
        for (int k = 0; k < count; k++)
            agreed |= k != i && agree(&rates[i], &rates[k]);
        rates[i].disputed = !agreed;
    }
}

int clock_rates(struct clock_rate rates[CLOCK_RATES_MAX], uint32_t ms, bool rtc)
{
    struct sysinfo_cpu cpu;
    int count;

    if (sysinfo_get_cpu("system.cpus.0", &cpu) < 0)
        return -1;
    count = compare_all(rates, ms, (double)cpu.frequency);
    if (count < 0)
        return -1;
    if (rtc && rtc_rate((double)cpu.frequency, &rates[count]))
        count++;
    find_disputed(rates, count);
    return count;
}
