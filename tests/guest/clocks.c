// All clocks: agreement, errors, setting and adjusting. Sets and adjusts clocks
// on Strobe only, to leave other machines' clocks alone.
#include "test.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/utsname.h>

#define SEC 1000000000ll
#define MS 1000000ll
#define YEAR_2040 2208988800ll

// The kernel's numbers of these calls; musl's headers name them differently.
#define NR_CLOCK_GETTIME32 265
#define NR_CLOCK_GETRES32 266
#define NR_CLOCK_SETTIME32 264
#define NR_SETTIMEOFDAY32 79
#define NR_STIME 25

static const clockid_t clocks[] = {
    CLOCK_REALTIME,      CLOCK_MONOTONIC,        CLOCK_PROCESS_CPUTIME_ID,
    CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,  CLOCK_THREAD_CPUTIME_ID,
    CLOCK_BOOTTIME,      CLOCK_MONOTONIC_COARSE,
};
#define CLOCKS (sizeof(clocks) / sizeof(clocks[0]))

static int64_t read_clock(clockid_t clock)
{
    struct timespec t;
    check(clock_gettime(clock, &t) == 0);
    check(t.tv_nsec >= 0 && t.tv_nsec < SEC);
    return t.tv_sec * SEC + t.tv_nsec;
}

static int64_t read_clock32(clockid_t clock)
{
    int32_t t[2];
    check(syscall(NR_CLOCK_GETTIME32, clock, t) == 0);
    return t[0] * SEC + t[1];
}

static void all_clocks(void)
{
    struct timespec resolution;
    for (unsigned i = 0; i < CLOCKS; i++) {
        int64_t first = read_clock(clocks[i]);
        int64_t second = read_clock32(clocks[i]);
        int64_t third = read_clock(clocks[i]);
        // The library may read a coarse clock, which lags.
        check(first <= second + 10 * MS && second <= third + 10 * MS);
        check(clock_getres(clocks[i], &resolution) == 0);
        check(resolution.tv_sec == 0 && resolution.tv_nsec > 0 &&
              resolution.tv_nsec <= 10 * MS);
        check(clock_getres(clocks[i], NULL) == 0);
    }
    int64_t monotonic = read_clock(CLOCK_MONOTONIC);
    check(read_clock(CLOCK_BOOTTIME) - monotonic >= -10 * MS);
    ok("every clock by both calls");
}

static void errors(void)
{
    struct timespec t;
    struct timespec bad = { 1, SEC };
    static const clockid_t none[] = { 16, 77, 1000000, -1, -5 };
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        check_error(clock_gettime(none[i], &t), EINVAL);
        check_error(clock_getres(none[i], &t), EINVAL);
        check_error(clock_settime(none[i], &t), EINVAL);
    }
    t = (struct timespec){ 1, 0 };
    check_error(clock_settime(CLOCK_MONOTONIC, &t), EINVAL);
    check_error(clock_settime(CLOCK_BOOTTIME, &t), EINVAL);
    check_error(clock_settime(CLOCK_REALTIME, &bad), EINVAL);
    bad = (struct timespec){ -1, 0 };
    check_error(clock_settime(CLOCK_REALTIME, &bad), EINVAL);
    bad = (struct timespec){ 1, -1 };
    check_error(clock_settime(CLOCK_REALTIME, &bad), EINVAL);
    for (unsigned i = 0; i < CLOCKS; i++) {
        check_error(syscall(NR_CLOCK_GETTIME32, clocks[i], 8), EFAULT);
        check_error(syscall(NR_CLOCK_GETRES32, clocks[i], 8), EFAULT);
    }
    check_error(syscall(NR_CLOCK_SETTIME32, CLOCK_REALTIME, 8), EFAULT);
    check_error(syscall(NR_STIME, 8), EFAULT);
    check_error(syscall(NR_SETTIMEOFDAY32, 8, 0), EFAULT);
    int32_t wrong[2] = { 5, 1000000 };
    check_error(syscall(NR_SETTIMEOFDAY32, wrong, 0), EINVAL);
    ok("errors of clocks");
}

// --- CPU time of other tasks ------------------------------------------------

static void use_cpu(int64_t ns)
{
    int64_t end = read_clock(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
}

static void *use_cpu_in_thread(void *barrier)
{
    use_cpu(30 * MS);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void cpu_clocks(void)
{
    clockid_t clock;
    check(clock_getcpuclockid(0, &clock) == 0);
    int64_t own = read_clock(clock);
    check(own <= read_clock(CLOCK_PROCESS_CPUTIME_ID));
    check(clock_getcpuclockid(getpid(), &clock) == 0);
    check(read_clock(clock) >= own);
    int64_t user = read_clock((clock & ~3) | 1); // user time only
    check(user <= read_clock(clock));
    check(clock_getcpuclockid(0x3ffffff, &clock) != 0); // no such task

    int fds[2];
    check(pipe(fds) == 0);
    pid_t child = fork();
    if (child == 0) {
        use_cpu(50 * MS);
        check(write(fds[1], "x", 1) == 1);
        pause();
        _exit(0);
    }
    char byte;
    check(read(fds[0], &byte, 1) == 1);
    check(clock_getcpuclockid(child, &clock) == 0);
    check(read_clock(clock) >= 50 * MS);
    struct timespec t = { 0, 0 };
    check(clock_settime(clock, &t) == -1);
    kill(child, SIGKILL);
    check(waitpid(child, NULL, 0) == child);
    check_error(clock_gettime(clock, &t), EINVAL);

    pthread_t thread;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    check(pthread_create(&thread, NULL, use_cpu_in_thread, &barrier) == 0);
    pthread_barrier_wait(&barrier);
    check(pthread_getcpuclockid(thread, &clock) == 0);
    check(read_clock(clock) >= 30 * MS);
    check(read_clock(CLOCK_PROCESS_CPUTIME_ID) >= read_clock(clock));
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    // A thread of another task is refused.
    check_error(clock_gettime((clockid_t)(~1u << 3 | 6), &t), EINVAL);
    ok("CPU clocks of tasks and threads");
}

// --- setting ----------------------------------------------------------------

static int64_t offset(void)
{
    int64_t wall = read_clock(CLOCK_REALTIME);
    return wall - read_clock(CLOCK_MONOTONIC);
}

static void set(int64_t sec, int64_t nsec)
{
    struct timespec t = { sec, nsec };
    int64_t before = read_clock(CLOCK_MONOTONIC);
    check(clock_settime(CLOCK_REALTIME, &t) == 0);
    int64_t now = read_clock(CLOCK_REALTIME);
    int64_t after = read_clock(CLOCK_MONOTONIC);
    check(now >= sec * SEC + nsec);
    check(now - (sec * SEC + nsec) <= after - before);
}

static void setting(void)
{
    int64_t before = offset(), start = read_clock(CLOCK_MONOTONIC);
    set(1234567890, 123456789);
    set(INT32_MAX, 999999999);
    set(INT32_MAX + 1ll, 1);
    set(YEAR_2040, 5);
    check(time(NULL) - YEAR_2040 <= 100 && time(NULL) >= YEAR_2040);
    struct timeval tv;
    check(gettimeofday(&tv, NULL) == 0 && tv.tv_sec >= YEAR_2040);
    set(7258118400, 0); // the year 2200
    struct timespec far = { 10000000000, 0 };
    check_error(clock_settime(CLOCK_REALTIME, &far), EINVAL);
    far.tv_sec = 0; // before boot
    check_error(clock_settime(CLOCK_REALTIME, &far), EINVAL);

    int32_t narrow[2] = { 1000000000, 500000 }, sec = 1100000000;
    check(syscall(NR_SETTIMEOFDAY32, narrow, 0) == 0);
    check(read_clock(CLOCK_REALTIME) - (1000000000 * SEC + 500 * MS) <
          10 * SEC);
    check(syscall(NR_STIME, &sec) == 0);
    check(time(NULL) >= sec && time(NULL) < sec + 10);
    int32_t zone[2] = { 901, 0 };
    check_error(syscall(NR_SETTIMEOFDAY32, 0, zone), EINVAL);
    zone[0] = -120;
    check(syscall(NR_SETTIMEOFDAY32, 0, zone) == 0);
    zone[0] = 0;
    check(syscall(78, 0, zone) == 0 && zone[0] == -120); // gettimeofday
    zone[0] = 0;
    check(syscall(NR_SETTIMEOFDAY32, 0, zone) == 0);

    check(read_clock(CLOCK_MONOTONIC) >= start); // MONOTONIC is unaffected
    int64_t wall = before + read_clock(CLOCK_MONOTONIC);
    set(wall / SEC, wall % SEC);
    ok("setting the clock, to 2040 and 2200 too");
}

static void refused(void)
{
    struct timespec t = { 1234567890, 0 };
    struct timeval tv = { 1, 0 };
    struct timex look = { 0 }, change = { .modes = ADJ_FREQUENCY };
    check(setuid(1000) == 0);
    check_error(clock_settime(CLOCK_REALTIME, &t), EPERM);
    check_error(settimeofday(&tv, NULL), EPERM);
    check_error(adjtime(&tv, NULL), EPERM);
    check(adjtimex(&look) >= 0);
    look.modes = ADJ_OFFSET_SS_READ;
    check(adjtimex(&look) >= 0);
    check_error(adjtimex(&change), EPERM);
    _exit(0);
}

// --- adjusting --------------------------------------------------------------

// Speed of REALTIME relative to MONOTONIC_RAW, in ppm, over 200 ms. (Both ends
// read in the same order, so that the cost of a reading cancels out.)
static int64_t speed_ppm(void)
{
    int64_t raw = read_clock(CLOCK_MONOTONIC_RAW);
    int64_t wall = read_clock(CLOCK_REALTIME);
    int64_t uptime = read_clock(CLOCK_MONOTONIC), elapsed;
    do {
        elapsed = read_clock(CLOCK_MONOTONIC_RAW) - raw;
    } while (elapsed < 200 * MS);
    int64_t by_wall = read_clock(CLOCK_REALTIME) - wall;
    int64_t by_uptime = read_clock(CLOCK_MONOTONIC) - uptime;
    check(llabs(by_wall - by_uptime) < 100 * MS); // both are adjusted
    return (by_wall - elapsed) * 1000000 / elapsed;
}

// Retries, because the host may stop the machine between two readings.
static bool speed_is(int64_t ppm)
{
    for (int i = 0; i < 10; i++) {
        int64_t is = speed_ppm();
        if (llabs(is - ppm) <= 50)
            return true;
        printf("# %lld ppm, not %lld\n", (long long)is, (long long)ppm);
    }
    return false;
}

// The remaining adjtime correction, in microseconds.
static long left_us(void)
{
    struct timex t = { .modes = ADJ_OFFSET_SS_READ };
    check(adjtimex(&t) >= 0);
    return t.offset;
}

static void adjusting(void)
{
    struct timeval delta = { 0, 200000 }, left;
    check(speed_is(0));
    check(adjtime(&delta, NULL) == 0); // 0.2 s at 500 ppm: 400 s
    check(speed_is(500));
    check(left_us() < 200000 && left_us() > 190000);
    delta = (struct timeval){ -3, 0 };
    check(adjtime(&delta, &left) == 0);
    check(left.tv_sec == 0 && left.tv_usec < 200000 && left.tv_usec > 190000);
    check(speed_is(-500));
    check(left_us() < -2900000 && left_us() > -3000000);
    delta = (struct timeval){ 0, 0 };
    check(adjtime(&delta, NULL) == 0);
    check(speed_is(0));
    check(left_us() == 0);
    // A small offset is corrected within 5 seconds, to the microsecond.
    delta.tv_usec = 300;
    check(adjtime(&delta, NULL) == 0);
    for (int i = 0; i < 50 && left_us(); i++)
        sleep_ms(100);
    check(left_us() == 0);
    check(speed_is(0));
    ok("adjtime slews by 500 ppm");
}

static void rates(void)
{
    struct timex t = { 0 };
    check(adjtimex(&t) == TIME_ERROR && t.status & STA_UNSYNC);
    check(t.tick == 10000 && t.freq == 0 && t.offset == 0);
    time_t now = time(NULL);
    check(adjtimex(&t) == TIME_ERROR);
    check(t.time.tv_sec >= now && t.time.tv_sec <= time(NULL));
    t.modes = ADJ_FREQUENCY;
    t.freq = 300 << 16;
    check(adjtimex(&t) >= 0 && t.freq == 300 << 16);
    check(speed_is(300));
    t.modes = ADJ_TICK | ADJ_FREQUENCY;
    t.tick = 9990;
    t.freq = 0;
    check(adjtimex(&t) >= 0 && t.tick == 9990);
    check(speed_is(-1000));
    t.tick = 8999;
    check_error(adjtimex(&t), EINVAL);
    t.tick = 11001;
    check_error(adjtimex(&t), EINVAL);
    t.tick = 10000;
    t.freq = 1 << 30; // clamped to 500 ppm
    check(adjtimex(&t) >= 0 && t.freq == 500 << 16);
    t.freq = 0;
    check(adjtimex(&t) >= 0);
    check(speed_is(0));
    t.modes = ADJ_OFFSET_SINGLESHOT & ~ADJ_OFFSET;
    check_error(adjtimex(&t), EINVAL);
    check_error(syscall(SYS_adjtimex, 8), EFAULT);
    ok("adjtimex sets frequency and tick");
}

// As an NTP daemon does: the PLL reduces the offset exponentially.
static void loop(void)
{
    struct timex t = { .modes = ADJ_STATUS | ADJ_OFFSET | ADJ_TIMECONST |
                                ADJ_MAXERROR | ADJ_ESTERROR,
                       .status = STA_PLL,
                       .offset = 8000 };
    check(adjtimex(&t) == TIME_OK);
    check(t.constant == 4 && t.offset > 7900 && t.offset <= 8000);
    check(speed_is(125)); // 8 ms / 2^(2+4) per second
    t.modes = 0;
    check(adjtimex(&t) == TIME_OK && t.offset < 8000 && t.offset > 0);
    t.modes = ADJ_STATUS;
    t.status = STA_UNSYNC;
    check(adjtimex(&t) == TIME_ERROR && t.offset == 0);
    check(speed_is(0));
    int64_t before = offset();
    t.modes = ADJ_SETOFFSET | ADJ_NANO;
    t.time.tv_sec = -2;
    t.time.tv_usec = 500000000;
    check(adjtimex(&t) >= 0 && t.status & STA_NANO);
    check(llabs(offset() - before + 1500 * MS) < 1000 * MS);
    t.time.tv_sec = 1;
    check(adjtimex(&t) >= 0);
    t.modes = ADJ_MICRO;
    check(adjtimex(&t) >= 0 && !(t.status & STA_NANO));
    ok("adjtimex steers");
}

// Sets an offset and measures the slew rate. Retries, because the remaining
// offset is smaller if the host stops the machine for a second.
static bool speed_with(const struct timex *setting, int64_t ppm)
{
    for (int i = 0; i < 10; i++) {
        struct timex t = *setting;
        check(adjtimex(&t) == TIME_OK && t.constant == 0);
        check(llabs(t.offset) > 0 && llabs(t.offset) <= 500000000);
        int64_t is = speed_ppm();
        if (llabs(is - ppm) <= 50)
            return true;
        printf("# %lld ppm, not %lld\n", (long long)is, (long long)ppm);
    }
    return false;
}

// The sum exceeds the maximum rate, so the loop takes longer. (STA_FREQHOLD:
// the frequency must not change, as it would after a second.)
static void fastest(void)
{
    struct timex t = { .modes = ADJ_STATUS | ADJ_OFFSET | ADJ_TIMECONST |
                                ADJ_TICK | ADJ_FREQUENCY | ADJ_NANO |
                                ADJ_MAXERROR | ADJ_ESTERROR,
                       .status = STA_PLL | STA_FREQHOLD,
                       .tick = 11000,
                       .freq = 500 << 16,
                       .offset = 500000000 };
    check(speed_with(&t, 125000));
    t.modes = ADJ_OFFSET;
    t.offset = -500000000;
    check(speed_with(&t, -24500)); // 100,500 ppm - 0.5 s / 2^2 per second
    t.modes = ADJ_STATUS | ADJ_TICK | ADJ_FREQUENCY | ADJ_MICRO;
    t.status = STA_UNSYNC;
    t.tick = 10000;
    t.freq = 0;
    check(adjtimex(&t) == TIME_ERROR);
    check(speed_is(0));
    ok("the clock's rate has a limit");
}

int main(void)
{
    struct utsname names;
    alarm(TEST_SECONDS);
    all_clocks();
    errors();
    cpu_clocks();
    check(uname(&names) == 0);
    if (strcmp(names.sysname, "Strobe") != 0) {
        ok("setting clocks: skipped, this is not Strobe");
        return 0;
    }
    setting();
    check(exited_with(in_child(refused), 0));
    adjusting();
    rates();
    loop();
    fastest();
    return 0;
}
