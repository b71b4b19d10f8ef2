// Sensors from inside: the kernel's are on while they are open; threads,
// interrupts and NMIs post into one list and one histogram.
#include "arch/nmi.h"
#include "kernel/base/errno.h"
#include "kernel/mm/heap.h"
#include "kernel/sensor/kernel_sensor.h"
#include "kernel/sensor/sensor.h"
#include "kernel/time/callout.h"
#include "lib/string.h"
#include "tests/kernel/fs_helpers.h"
#include "tests/kernel/thread_helpers.h"

#include <strobe/sensor_post.h>

// --- the kernel's -----------------------------------------------------------

static struct file *open_sensor(const char *path)
{
    struct file *f = NULL;
    expect(vfs_open(NULL, path, O_RDONLY, 0, &f) == 0);
    return f;
}

static u64 counted(const struct sensor *s)
{
    const struct sensor_histogram_layout *h = &s->header->layout.histogram;
    u8 *data = (u8 *)s->header + SENSOR_DATA;
    u64 sum = 0;
    for (u32 i = 0; i < h->lanes; i++) {
        const struct sensor_lane *lane = sensor_lane_of(data, h, i);
        for (u32 bin = 0; bin < h->x.bins; bin++)
            sum += sensor_wide_read(&lane->cells[bin]);
    }
    return sum;
}

static void sleep_once(void *arg UNUSED)
{
    sleep_ms(1);
    report_done();
}

#define SLEEPERS 5u

KERNEL_TEST(sensor_counts_while_open)
{
    u32 buffers = 0;
    struct frame_stats before, after;
    frame_stats(&before);
    struct file *f = open_sensor("/sensors/sched/latency");
    struct file *again = open_sensor("/sensors/sched/latency");
    struct sensor *s = sensor_of(f->vnode);
    expect(strcmp(sensor_state(s), "open") == 0 && s->readers == 2);
    u64 begin = counted(s);
    reset();
    for (u32 i = 0; i < SLEEPERS; i++)
        start(sleep_once, NULL);
    wait_for(SLEEPERS);
    expect(counted(s) >= begin + 2 * SLEEPERS);
    file_unref(again);
    expect(strcmp(sensor_state(s), "open") == 0);
    file_unref(f);
    expect(strcmp(sensor_state(s), "off") == 0 && !s->header);
    frame_stats(&after);
    buffers = (u32)(after.by_use[FRAME_BUFFER] - before.by_use[FRAME_BUFFER]);
    expect(buffers == 0);
}

KERNEL_TEST(sensor_gauge_is_refreshed)
{
    struct file *f = open_sensor("/sensors/mm/free");
    const struct sensor *s = sensor_of(f->vnode);
    struct sensor_wide *value = (void *)((u8 *)s->header + SENSOR_DATA);
    expect(sensor_wide_read(value) > 0);
    sensor_scalar_set(value, 0);
    sleep_ms(500);
    expect(sensor_wide_read(value) > 0);
    file_unref(f);
}

KERNEL_TEST(sensor_files_refuse)
{
    struct file *f;
    expect(vfs_open(NULL, "/sensors/mm/free", O_RDWR, 0, &f) == -EACCES);
    expect(vfs_open(NULL, "/sensors/none", O_RDONLY, 0, &f) == -ENOENT);
    f = open_sensor("/sensors/mm/free");
    struct vnode *v = f->vnode;
    expect(!v->ops->may_map_writable(v, 0, PAGE_SIZE));
    file_unref(f);
}

// --- posting from threads, interrupts and NMIs ------------------------------

#define POSTERS 3u
#define POSTS 400u
#define SLOTS 4096u

static const struct sensor_list_layout list_layout = { SLOTS, 32 };
static const struct sensor_histogram_layout hist_layout = {
    .lanes = 2, .x = { SENSOR_LOG2, 6, 1, 52 }
};
static u8 *list, *histogram;
static u32 posted; // by all; atomic
static bool stop;

static void post(u32 type)
{
    u32 n = __atomic_fetch_add(&posted, 1, __ATOMIC_RELAXED);
    sensor_post(list, &list_layout, type, this_cpu()->id, type, &n, sizeof(n));
    sensor_histogram_add(histogram, &hist_layout, this_cpu()->id, 100 + n);
}

static void post_in_nmi(const struct trapframe *tf UNUSED)
{
    post(2);
}

static void post_in_interrupt(struct callout *c)
{
    post(1);
    if (!READ_ONCE(stop))
        callout_set(c, clock_now_ns() + NSEC_PER_SEC / 5000);
}

static void post_often(void *arg UNUSED)
{
    for (u32 i = 0; i < POSTS; i++) {
        post(0);
        if (i % 50 == 0)
            sleep_ms(1);
    }
    report_done();
}

static void check_list(void)
{
    static u8 seen[SLOTS];
    u32 event[8], lost = 0, by_type[3] = { 0 };
    const struct sensor_event *e = (const struct sensor_event *)event;
    u32 next = ((struct sensor_list *)list)->next;
    expect(next == posted && next <= SLOTS);
    memset(seen, 0, sizeof(seen));
    for (u32 i = 0; i < next; i++) {
        if (sensor_see(list, &list_layout, i, event) != SENSOR_SEEN_EVENT) {
            lost++;
            continue;
        }
        expect(e->type < 3 && e->thread == e->type && e->bytes == sizeof(u32));
        expect(e->payload[0] < next && !seen[e->payload[0]]);
        seen[e->payload[0]] = 1;
        by_type[MIN(e->type, 2u)]++;
    }
    expect(lost == 0); // nobody was overtaken
    expect(by_type[0] == POSTERS * POSTS && by_type[1] > 0);
    expect(cpu_count == 1 || by_type[2] > 0);
}

static void check_histogram(void)
{
    u64 count = 0, sum = 0;
    for (u32 i = 0; i < hist_layout.lanes; i++) {
        const struct sensor_lane *l =
            sensor_lane_of(histogram, &hist_layout, i);
        for (u32 bin = 0; bin < hist_layout.x.bins; bin++)
            count += sensor_wide_read(&l->cells[bin]);
        sum += sensor_wide_read(&l->sum);
    }
    expect(count == posted);
    expect(sum == (u64)posted * 100 + (u64)posted * (posted - 1) / 2);
}

KERNEL_TEST(sensor_posting_is_exact)
{
    struct callout timer;
    u32 list_pages =
        DIV_ROUND_UP(sizeof(struct sensor_list) + SLOTS * 32, PAGE_SIZE);
    list = vmap_alloc(list_pages, PROT_R | PROT_W, FRAME_BUFFER);
    histogram = vmap_alloc(1, PROT_R | PROT_W, FRAME_BUFFER);
    expect(list && histogram);
    expect(2 * sensor_lane_bytes(&hist_layout) <= PAGE_SIZE);
    posted = 0;
    WRITE_ONCE(stop, false);
    callout_init(&timer, post_in_interrupt, CALLOUT_INTERRUPT);
    callout_set(&timer, clock_now_ns());
    reset();
    for (u32 i = 0; i < POSTERS; i++)
        start(post_often, NULL);
    for (u32 i = 0; i < 100; i++) {
        nmi_call_others(post_in_nmi);
        sleep_ms(1);
    }
    wait_for(POSTERS);
    WRITE_ONCE(stop, true);
    callout_drain(&timer);
    check_list();
    check_histogram();
    vmap_free(list, list_pages);
    vmap_free(histogram, 1);
}

// Two writers of a slot: the second one does not take it; a reader sees the
// first one's event or, if that one died, none.
KERNEL_TEST(sensor_dead_writer)
{
    static u8 data[sizeof(struct sensor_list) + 4 * 32];
    const struct sensor_list_layout four = { 4, 32 };
    u32 event[8], n = 5;
    memset(data, 0, sizeof(data));
    // Number 0 was taken, and its slot begun.
    ((struct sensor_list *)data)->next = 1;
    sensor_slot(data, &four, 0)->state = SENSOR_EVENT_BUSY(0);
    expect(sensor_see(data, &four, 0, event) == SENSOR_SEEN_PENDING);
    for (u32 i = 1; i <= 4; i++)
        expect(sensor_post(data, &four, 0, 0, 0, &n, sizeof(n)) == i);
    expect(sensor_see(data, &four, 0, event) == SENSOR_SEEN_LOST);
    for (u32 i = 1; i <= 3; i++)
        expect(sensor_see(data, &four, i, event) == SENSOR_SEEN_EVENT);
    expect(sensor_see(data, &four, 4, event) != SENSOR_SEEN_EVENT);
    for (u32 i = 5; i <= 9; i++)
        sensor_post(data, &four, 0, 0, 0, &n, sizeof(n));
    expect(sensor_see(data, &four, 4, event) == SENSOR_SEEN_LOST);
    expect(sensor_see(data, &four, 1, event) == SENSOR_SEEN_LOST);
    // A number below 4 that was taken long ago does not overwrite a later one.
    ((struct sensor_list *)data)->next = 1;
    sensor_post(data, &four, 9, 0, 0, &n, sizeof(n));
    expect(sensor_slot(data, &four, 1)->type == 0);
}
