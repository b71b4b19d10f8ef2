// A program that evades tick-based accounting: it works between the ticks of a
// grid of the system time and sleeps across each of them
// (tests/system/test_truth.py).
//
//     hides [MILLISECONDS]     (20)
#include "test.h"

#define TICK_NS 1000000ull
#define MARGIN_NS 100000ull

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
    struct timespec t = { ns / 1000000000, ns % 1000000000 };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
}

int main(int argc, char *argv[])
{
    unsigned long ms = argc > 1 ? strtoul(argv[1], NULL, 10) : 20;
    uint64_t end = now() + ms * 1000000;
    while (now() < end) {
        uint64_t tick = (now() / TICK_NS + 1) * TICK_NS;
        while (now() < tick - MARGIN_NS)
            ;
        sleep_until(tick + MARGIN_NS);
    }
    ok("hides");
    return 0;
}
