// The cost of posting into sensors: instructions of the usual path, without the
// loop around it.
#include "bench.h"

#include "user/libstrobe/sensor.h"

#include <stdio.h>

#define TURNS 10000u
#define FOLDER "/sensors/bench/"

static struct sensor_scalar scalar = SENSOR_COUNTER_INIT;
static struct sensor_histogram histogram = SENSOR_LINEAR_INIT(0, 500, 40);
static struct sensor_events list = SENSOR_EVENTS_INIT(1024, 64);
static struct sensor_records ring = SENSOR_RECORDS_INIT(65536);

static const struct {
    uint32_t words[4];
} small;
static const struct {
    uint32_t words[8];
} large;

static void nothing(uint32_t i)
{
    __asm__ volatile("" ::"r"(i));
}

static void add_scalar(uint32_t i)
{
    (void)i;
    sensor_add(&scalar, 1);
}

static void add_histogram(uint32_t i)
{
    sensor_hist_add(&histogram, i);
}

static void post_small(uint32_t i)
{
    (void)i;
    sensor_post(&list, 1, &small);
}

static void post_large(uint32_t i)
{
    (void)i;
    sensor_post(&list, 1, &large);
}

static void write_record(uint32_t i)
{
    (void)i;
    sensor_write(&ring, 1, &small);
}

// In line in `cost`, so that each has a loop of its own.
#define COST(what)                           \
    static uint64_t cost_of_##what(void)     \
    {                                        \
        uint64_t start = rdtsc();            \
        for (uint32_t i = 0; i < TURNS; i++) \
            what(i);                         \
        return rdtsc() - start;              \
    }
COST(nothing)
COST(add_scalar)
COST(add_histogram)
COST(post_small)
COST(post_large)
COST(write_record)

static void print(const char *name, uint64_t (*cost)(void))
{
    begin(name);
    cost(); // the pages, and the values seen
    uint64_t loop = cost_of_nothing(), all = cost();
    printf("%s %llu\n", name,
           (unsigned long long)(all - loop + TURNS) / 2 / TURNS);
}

void sensors(void)
{
    begin("sensors");
    must(!sensor_scalar_open(&scalar, FOLDER "scalar", "of bench") &&
             !sensor_hist_open(&histogram, FOLDER "histogram", "of bench") &&
             !sensor_events_open(&list, FOLDER "list", "of bench") &&
             !sensor_records_open(&ring, FOLDER "ring", "of bench"),
         "opening " FOLDER);
    print("sensor-add", cost_of_add_scalar);
    print("sensor-histogram", cost_of_add_histogram);
    print("sensor-event-16", cost_of_post_small);
    print("sensor-event-32", cost_of_post_large);
    print("sensor-record", cost_of_write_record);
}
