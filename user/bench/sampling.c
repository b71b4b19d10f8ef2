// The cost of profiling for the profiled program, with the default source: the
// cost of one sample, from the instruction before the interrupt to the one
// after it; and the slow-down of a loop, in additional instructions for a
// million of its own.
//
// The program profiles itself. Other interrupts (timers, the scheduler) are
// rare among so many samples: the median is the cost of a sample.
#include "bench.h"

#include "user/libstrobe/strobe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAMES 17 // of the stack that BASELINES of other systems used
#define RATE_HZ 1000
#define FAST_HZ 8000
#define SAMPLES 101
#define LOOPS 20000000u
#define SHORT_LOOPS 20
#define MILLION 1000000u

// Two TSC readings at least this far apart have an interrupt between them.
#define GAP_MIN 200u

struct frame {
    const struct frame *caller;
    const void *back;
};

static unsigned frames(void)
{
    unsigned n = 1; // the frame where the sample is taken
    const struct frame *f = __builtin_frame_address(0);

    for (; f != NULL && f->back != NULL; f = f->caller)
        n++;
    return n - 1; // without this function
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static uint32_t now(void)
{
    uint32_t low;
    __asm__ volatile("rdtsc" : "=a"(low) : : "edx");
    return low;
}

// Returns the median of the gaps that interrupts leave in a loop of rdtsc,
// minus the cost of a turn of the loop. Every call of this function may be a
// tail call.
static __attribute__((noinline)) uint32_t middle_gap(void)
{
    static uint32_t gaps[SAMPLES];
    uint32_t last = now(), turn = UINT32_MAX;

    for (unsigned n = 0; n < SAMPLES;) {
        uint32_t t = now(), gap = t - last;
        last = t;
        if (gap >= GAP_MIN)
            gaps[n++] = gap;
        else if (gap < turn)
            turn = gap;
    }
    qsort(gaps, SAMPLES, sizeof(gaps[0]), by_size);
    return gaps[SAMPLES / 2] - turn;
}

static __attribute__((noinline)) uint32_t turns(uint32_t n)
{
    uint64_t start = rdtsc();
    for (uint32_t i = 0; i < n; i++)
        __asm__ volatile("" : "+r"(i));
    return (rdtsc() - start) / 2;
}

static uint32_t loop(void)
{
    return turns(LOOPS);
}

// Takes the minimum, to exclude runs that timers interrupt.
static uint32_t shortest_loop(void)
{
    uint32_t best = UINT32_MAX;
    for (int i = 0; i < SHORT_LOOPS; i++) {
        uint32_t n = turns(LOOPS / SHORT_LOOPS);
        best = n < best ? n : best;
    }
    return best;
}

// Calls `what` in a function that has `depth` frames on the stack.
static __attribute__((noinline)) uint32_t deeper(unsigned depth,
                                                 uint32_t (*what)(void))
{
    uint32_t result = frames() + 1 < depth ? deeper(depth, what) : what();
    __asm__ volatile("" : "+r"(result)); // prevents a tail call
    return result;
}

uint32_t on_deep_stack(uint32_t (*what)(void))
{
    return deeper(FRAMES, what);
}

static uint32_t sampled(uint32_t hz, uint32_t flags, uint32_t (*what)(void))
{
    struct sprofile_options o = {
        .rate_hz = hz,
        .flags = flags,
        .ring_bytes = 1 << 20,
    };
    struct profile_session s;

    must(profile_begin(&s, getpid(), &o) == 0, "a profile session");
    bool stacks = flags & SPROFILE_O_STACKS;
    uint32_t result = stacks ? on_deep_stack(what) : what();
    profile_end(&s);
    return result;
}

static void print_sample(const char *name, uint32_t flags)
{
    begin(name);
    printf("%s %u\n", name, sampled(RATE_HZ, flags, middle_gap) / 2);
}

static void print_slowdown(const char *name, uint32_t now, uint32_t alone)
{
    int64_t more = (int64_t)now - alone;

    printf("%s %lld\n", name, (long long)(more * MILLION / alone));
}

static void print_slower(const char *name, uint32_t hz, uint32_t flags,
                         uint32_t alone)
{
    begin(name);
    print_slowdown(name, sampled(hz, flags, loop), alone);
}

void sampling(void)
{
    uint32_t before = shortest_loop(), alone = loop();

    print_sample("sample-pc", 0);
    print_sample("sample-random", SPROFILE_O_RANDOM);
    print_sample("sample-stack", SPROFILE_O_STACKS);
    print_slower("slower-pc", RATE_HZ, 0, alone);
    print_slower("slower-pc-fast", FAST_HZ, 0, alone);
    print_slower("slower-stack", RATE_HZ, SPROFILE_O_STACKS, alone);
    print_slower("slower-stack-fast", FAST_HZ, SPROFILE_O_STACKS, alone);
    print_slowdown("slower-off", shortest_loop(), before);
}
