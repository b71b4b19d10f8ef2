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
            sum += sensor_count_read(&lane->cells[bin]);
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
    struct sensor_count *value = (void *)((u8 *)s->header + SENSOR_DATA);
    expect(sensor_count_read(value) > 0);
    sensor_scalar_set(value, 0);
    sleep_ms(500);
    expect(sensor_count_read(value) > 0);
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

// Together at most SLOTS events, however many CPUs there are and however long
// it takes.
#define POSTERS 3u
#define POSTS 400u
#define INTERRUPT_POSTS 1000u
#define NMI_POSTS 1500u
#define SLOTS 4096u
_Static_assert(POSTERS *POSTS + INTERRUPT_POSTS + NMI_POSTS <= SLOTS, "");

static const struct sensor_list_layout list_layout = { .slots = SLOTS,
                                                       .slot_bytes = 32 };
static const struct sensor_histogram_layout hist_layout = {
    .lanes = 2, .x = { SENSOR_LOG2, 6, 1, 52 }
};
static u8 *list, *histogram;
static u32 posted; // by all; atomic
static u32 left_in_interrupts;
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
    if (!READ_ONCE(stop) && --left_in_interrupts)
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
            count += sensor_count_read(&l->cells[bin]);
        sum += sensor_count_read(&l->sum);
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
    left_in_interrupts = INTERRUPT_POSTS;
    WRITE_ONCE(stop, false);
    callout_init(&timer, post_in_interrupt, CALLOUT_INTERRUPT);
    callout_set(&timer, clock_now_ns());
    reset();
    for (u32 i = 0; i < POSTERS; i++)
        start(post_often, NULL);
    for (u32 i = 0; i < MIN(100u, NMI_POSTS / cpu_count); i++) {
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
    const struct sensor_list_layout four = { .slots = 4, .slot_bytes = 32 };
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

// --- rings ------------------------------------------------------------------

#define RING_RECORDS 3000u

static const struct sensor_ring_layout ring_layout = { .bytes = 16384 };
static u8 *ring_data;
static u32 ring_cpu; // the writer
static u32 begun[3]; // records, by type: thread, interrupt, NMI

// Interrupts only come between a type's own records.
static void write_record(u32 type)
{
    u32 record[2] = { type, begun[type]++ };
    sensor_ring_write(ring_data, &ring_layout, type, record, sizeof(record));
}

static void write_in_nmi(const struct trapframe *tf UNUSED)
{
    if (this_cpu()->id == ring_cpu)
        write_record(2);
}

static void write_in_interrupt(struct callout *c)
{
    if (this_cpu()->id == ring_cpu)
        write_record(1);
    if (!READ_ONCE(stop))
        callout_set(c, clock_now_ns() + NSEC_PER_SEC / 5000);
}

static void write_records(void *arg)
{
    expect(run_on(current, ring_cpu) == 0);
    callout_set(arg, clock_now_ns());
    for (u32 i = 0; i < RING_RECORDS; i++) {
        write_record(0);
        if (i % 50 == 0)
            sleep_ms(1);
    }
    report_done();
}

// What is there is whole, in the order of numbers, times and each writer.
static void check_ring(void)
{
    struct sensor_ring *ring = (struct sensor_ring *)ring_data;
    u32 block = sensor_ring_block(&ring_layout);
    u32 at = ring->published - sensor_ring_units(&ring_layout);
    u32 number = 0, next[3] = { 0 };
    u64 time = 0;
    expect(ring->published == ring->taken.at && !ring->depth);
    expect(ring->taken.number == begun[0] + begun[1] + begun[2]);
    at = sensor_ring_next_block(&ring_layout, at);
    while (at != ring->published) {
        const struct sensor_record *r =
            sensor_ring_at(ring_data, &ring_layout, at);
        u32 units = DIV_ROUND_UP(r->size, SENSOR_UNIT);
        expect(units && units <= block - at % block);
        if (!units)
            return;
        at += units;
        if (r->type == SENSOR_PAD)
            continue;
        expect(r->type < 3 && r->payload[0] == r->type);
        expect(!number || r->number == number + 1);
        expect(sensor_wide_read(&r->time) >= time);
        expect(r->payload[1] >= next[r->type % 3]);
        next[r->type % 3] = r->payload[1] + 1;
        number = r->number;
        time = sensor_wide_read(&r->time);
    }
    expect(number == ring->taken.number - 1);
}

KERNEL_TEST(sensor_ring_nests)
{
    struct callout timer;
    u32 pages = DIV_ROUND_UP(SENSOR_DATA + ring_layout.bytes, PAGE_SIZE);
    ring_data = vmap_alloc(pages, PROT_R | PROT_W, FRAME_BUFFER);
    expect(ring_data);
    ring_cpu = cpu_count - 1;
    memset(begun, 0, sizeof(begun));
    WRITE_ONCE(stop, false);
    callout_init(&timer, write_in_interrupt, CALLOUT_INTERRUPT);
    reset();
    start(write_records, &timer);
    expect(run_on(current, 0) == 0); // others: ring_cpu, too
    for (u32 i = 0; i < 100; i++) {
        nmi_call_others(write_in_nmi);
        sleep_ms(1);
    }
    expect(run_anywhere(current) == 0);
    wait_for(1);
    WRITE_ONCE(stop, true);
    callout_drain(&timer);
    expect(begun[0] == RING_RECORDS && begun[1] > 0);
    expect(cpu_count == 1 || begun[2] > 0);
    check_ring();
    vmap_free(ring_data, pages);
}

KERNEL_TEST(sensor_switches_of_a_cpu)
{
    struct file *f = open_sensor("/sensors/sched/switch.0");
    const struct sensor *s = sensor_of(f->vnode);
    const struct sensor_ring *ring = (void *)((u8 *)s->header + SENSOR_DATA);
    expect(run_on(current, 0) == 0);
    u32 before = ring->taken.number;
    // A sleep that is over before it began, on a slow machine, switches
    // nothing.
    while (READ_ONCE(ring->taken.number) - before < 2 * SLEEPERS)
        sleep_ms(1);
    u32 flags = irq_save();
    expect(ring->published == ring->taken.at);
    irq_restore(flags);
    expect(run_anywhere(current) == 0);
    file_unref(f);
    expect(!s->header);
}
