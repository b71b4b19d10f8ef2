// The video decoder of docs/sensors.md: what its decoding costs, whether it
// meets its deadlines, and how full its buffer is, by sensors. Another part of
// it, which could be another program, reads the deadline misses and adapts the
// quality.
//
//     /test/sensor_decoder [FRAMES [SECONDS]]
//
// stays for SECONDS, so that its sensors can be looked at.
//
// Posting before opening does nothing; the sums of all sensors agree.
#include "test.h"

#include "user/libstrobe/sensor.h"

#include "user/libread/sensor_read.h"

#define FRAMES 200u
#define BUFFER 8u
#define WIDTHS 4u

static struct sensor_scalar misses = SENSOR_COUNTER_INIT;
static struct sensor_scalar slowest = SENSOR_GAUGE_INIT;
static struct sensor_histogram cost = SENSOR_LINEAR_INIT(0, 500, 40);
// Cost and count by width and height, for two steps: decoding, filtering.
static struct sensor_histogram steps =
    SENSOR_LAYERS_INIT(2, 0, 16, WIDTHS, 0, 16, WIDTHS);

#define FRAME(F) F(u32, number) F(u32, cost) F(u16, buffer) F(u16, quality)
#define TYPES(T) T(frame, 10, FRAME)
SENSOR_TYPES_OF(TYPES)
static struct sensor_events frames = SENSOR_EVENTS_INIT(256, 64);

static uint32_t quality = 8, posted_sum;

// A frame's work: its cost in made-up units, which the quality changes.
static uint32_t decode(uint32_t frame)
{
    return 4000 + frame * 7919 % 5000 + quality * 500;
}

// The adaptation: it knows nothing of the decoder but a sensor.
static void adapt(const struct sensor_view *view)
{
    static uint64_t before;
    uint64_t now = sensor_view_scalar(view);
    if (now - before > 2 && quality > 0)
        quality--;
    else if (now == before && quality < 8)
        quality++;
    before = now;
}

static void play(uint32_t frame, const struct sensor_view *view)
{
    uint32_t units = decode(frame);
    sensor_hist_add(&cost, units);
    sensor_max(&slowest, units);
    sensor_layers_add(&steps, frame & 1, frame % 64, frame / 2 % 64, units);
    if (units > 10000)
        sensor_add(&misses, 1);
    struct sensor_of_frame f = { frame, units, (uint16_t)(frame % BUFFER),
                                 (uint16_t)quality };
    sensor_post(&frames, sensor_type_frame, &f);
    posted_sum += units;
    if (view && frame % 10 == 9)
        adapt(view);
}

static const void *map_file(const char *path, size_t size)
{
    char real[SENSOR_REAL_PATH];
    snprintf(real, sizeof(real), "%s%s",
             access("/sensors", F_OK) ? "/dev/shm" : "", path);
    int fd = open(real, O_RDONLY);
    check(fd >= 0);
    const void *m = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    check(m != MAP_FAILED && close(fd) == 0);
    return m;
}

static void look(struct sensor_view *v, const char *path,
                 const struct sensor_layout *l)
{
    size_t size = SENSOR_DATA + sensor_data_bytes(l);
    check(!sensor_view_init(v, map_file(path, size), size));
}

static void open_all(void)
{
    check(sensor_scalar_open(&misses, "/sensors/verner/misses",
                             "deadlines that were missed") == 0);
    check(sensor_scalar_open(&slowest, "/sensors/verner/slowest",
                             "units of the slowest frame") == 0);
    check(sensor_hist_open(&cost, "/sensors/verner/decode.cost",
                           "units of a frame") == 0);
    check(sensor_hist_open(&steps, "/sensors/verner/steps",
                           "units by width and height; layer 0: decoding, "
                           "1: filtering") == 0);
    check(sensor_events_open(&frames, "/sensors/verner/frames",
                             SENSOR_TEXT(TYPES)) == 0);
    ok("sensors are created, with the folder");
}

static void compare(uint32_t count)
{
    struct sensor_view v;
    struct sensor_layout l = { .type = SENSOR_HISTOGRAM,
                               .histogram = cost.layout };
    look(&v, "/sensors/verner/decode.cost", &l);
    struct sensor_totals t = sensor_view_totals(&v);
    check(t.count + t.under + t.over == count && t.sum == posted_sum);
    check(t.least <= t.most && t.least >= 4000 && t.most == slowest.data->low);
    l.histogram = steps.layout;
    look(&v, "/sensors/verner/steps", &l);
    t = sensor_view_totals(&v);
    check(t.count + t.under + t.over == count && t.sum == posted_sum);
    ok("histograms have all frames, and their sum");
    l = (struct sensor_layout){ .type = SENSOR_LIST, .list = frames.layout };
    look(&v, "/sensors/verner/frames", &l);
    struct sensor_cursor c = { 0 };
    union {
        struct sensor_event event;
        uint32_t words[SENSOR_SLOT_BYTES_MAX / 4];
    } e;
    uint32_t next = c.next;
    while (sensor_cursor_next(&c, &v, true, &e.event)) {
        struct sensor_of_frame f;
        memcpy(&f, e.event.payload, sizeof(f));
        check(e.event.bytes == sizeof(f) && f.number == c.next - 1);
        check(e.event.thread == (uint32_t)getpid());
        next = c.next;
    }
    check(next == count && c.read + c.lost == count && !c.spoilt);
    check(c.lost == (count > 256 ? count - 256 : 0));
    ok("each event is read once, or counted as lost");
}

// The child posts into the same sensors, and has no sensors of its own.
static void posts_after_fork(void)
{
    uint32_t before = misses.data->low;
    int status;
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        sensor_forked();
        sensor_add(&misses, 3);
        _exit(0);
    }
    sensor_add(&misses, 4);
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
    check(misses.data->low == before + 7);
    ok("fork: parent and child are both counted");
}

int main(int argc, char **argv)
{
    uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : FRAMES;
    play(0, NULL);
    posted_sum = 0;
    ok("posting before opening does nothing");
    open_all();
    struct sensor_view view;
    struct sensor_layout l = { .type = SENSOR_SCALAR, .scalar = misses.layout };
    look(&view, "/sensors/verner/misses", &l);
    for (uint32_t frame = 0; frame < count; frame++)
        play(frame, &view);
    compare(count);
    check(quality < 8);
    ok("the quality follows the misses");
    posts_after_fork();
    if (argc > 2)
        sleep((unsigned)atoi(argv[2]));
    return 0;
}
