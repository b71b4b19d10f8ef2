// The kernel's own sensors: memory, files, on and off.
//
// A sensor that is on has memory, which its listeners write. It is allocated by
// the first opening and freed after the last one has ended, unless a mapping or
// another descriptor still uses the file: then the next one finds it.
//
// Locking: `kernel_lock` (a mutex) guards `users`, `memory` and `sensor`. It is
// taken after namespace_lock. A listener reads `memory` without it: memory is
// there before the trace point calls it, and trace_unlisten waits for it.

#include "kernel/sensor/kernel_sensor.h"

#include <strobe/sensor_post.h>

#include "kernel/base/cmdline.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/sensor/sensor.h"
#include "kernel/sensor/trace_sensor.h"
#include "kernel/time/callout.h"
#include "lib/string.h"

#include "arch/clock.h"
#include "arch/irq.h"

#define LANES_MAX 8u
#define CALL_NUMBERS 1040u // Linux's, and Strobe's own, which begin at 1000
#define RING_BYTES (64u << 10)
#define GAUGE_PERIOD_NS (NSEC_PER_SEC / 10)
#define HEAP "heap" // directory of the heap caches' sensors
#define FILE_MODE 0444u
#define RING_FILE_MODE 0400u // it tells what the threads of all users do
#define DIRECTORY_MODE 0755u

KERNEL_ARG(sensors, "sensors=PATH,...: kernel sensors that are on from the "
                    "start, not only while they are open (all: all)");

static struct mutex kernel_lock = MUTEX_INIT(kernel_lock, "kernel sensors");

// --- what they hold
// -----------------------------------------------------------

static struct sensor_header *header_of(const struct kernel_sensor *k)
{
    return (struct sensor_header *)k->memory;
}

static void *data_of(const struct kernel_sensor *k)
{
    return k->memory + SENSOR_DATA;
}

// Times: 64 ns to 4.3 s (longer ones count as that), two bins for each power of
// two; one by vector or call, to keep them small.
static struct sensor_layout layout_of(const struct kernel_sensor *k)
{
    struct sensor_layout l = { .type = SENSOR_HISTOGRAM };
    struct sensor_histogram_layout *h = &l.histogram;
    h->lanes = MIN(smp_cpus_expected(), LANES_MAX);
    h->x = (struct sensor_axis){ .scale = SENSOR_LOG2, .first = 6, .bins = 26 };
    h->y = (struct sensor_axis){ .scale = SENSOR_LINEAR, .width = 1 };
    switch (k->kind) {
    case KERNEL_SENSOR_TIMES:
        h->x.width = 1;
        h->x.bins *= 2;
        break;
    case KERNEL_SENSOR_TIMES_BY_VECTOR:
        h->y.bins = VECTORS;
        break;
    case KERNEL_SENSOR_TIMES_BY_CALL:
        h->y.bins = CALL_NUMBERS;
        break;
    case KERNEL_SENSOR_GAUGE:
        l.type = SENSOR_SCALAR;
        l.scalar = (struct sensor_scalar_layout){ SENSOR_GAUGE, 64 };
        break;
    case KERNEL_SENSOR_RING:
        l.type = SENSOR_RING;
        l.ring = (struct sensor_ring_layout){ .bytes = RING_BYTES };
        break;
    }
    return l;
}

static u32 word_of(u64 ns)
{
    return (u32)MIN(ns, (u64)UINT32_MAX);
}

void kernel_sensor_add(struct kernel_sensor *k, u64 ns)
{
    sensor_histogram_add(data_of(k), &header_of(k)->layout.histogram,
                         this_cpu()->id, word_of(ns));
}

void kernel_sensor_add_for(struct kernel_sensor *k, u32 what, u64 ns)
{
    sensor_histogram_add_2d(data_of(k), &header_of(k)->layout.histogram,
                            this_cpu()->id, word_of(ns), what);
}

void kernel_sensor_write(struct kernel_sensor *k, u32 type, const void *record,
                         u32 bytes)
{
    sensor_ring_write(data_of(k), &header_of(k)->layout.ring, type, record,
                      bytes);
}

// --- gauges -----------------------------------------------------------------

// The open gauges; guarded by kernel_lock. The callout is set while there are
// some.
static struct list gauges = LIST_INIT(gauges);

static void refresh(struct kernel_sensor *k)
{
    mutex_assert_held(&kernel_lock);
    sensor_scalar_set(data_of(k), k->value(k));
}

static void refresh_gauges(struct callout *c)
{
    struct kernel_sensor *k;
    mutex_lock(&kernel_lock);
    list_for_each(k, &gauges, gauge_node)
        refresh(k);
    if (!list_empty(&gauges))
        callout_set(c, clock_now_ns() + GAUGE_PERIOD_NS);
    mutex_unlock(&kernel_lock);
}

static struct callout *gauge_callout(void)
{
    static struct callout c;
    mutex_assert_held(&kernel_lock);
    if (!c.fn)
        callout_init(&c, refresh_gauges, CALLOUT_THREAD);
    return &c;
}

// --- on and off -------------------------------------------------------------

static int allocate(struct kernel_sensor *k)
{
    mutex_assert_held(&kernel_lock);
    if (k->memory)
        return 0;
    struct sensor_layout layout = layout_of(k);
    u32 bytes = sensor_data_bytes(&layout);
    assert(bytes);
    k->pages = 1 + DIV_ROUND_UP(bytes, PAGE_SIZE);
    k->memory = vmap_alloc(k->pages, PROT_R | PROT_W, FRAME_BUFFER);
    if (!k->memory)
        return -ENOMEM;
    sensor_header_fill(header_of(k), &layout, k->text, 0);
    return 0;
}

// Makes the memory the contents of the file.
static void attach(struct kernel_sensor *k)
{
    mutex_assert_held(&kernel_lock);
    if (k->memory && k->sensor && !k->sensor->header)
        sensor_attach(k->sensor, k->memory, k->pages);
}

// Frees the memory of a sensor that is off, if only its file's name is left,
// and the descriptor that is being closed.
static void free_if_unused(struct kernel_sensor *k)
{
    mutex_assert_held(&kernel_lock);
    struct sensor *s = k->sensor;
    if (k->users || !k->memory ||
        (s && __atomic_load_n(&s->vnode->refs, __ATOMIC_RELAXED) > 2))
        return;
    if (s)
        sensor_attach(s, NULL, 0);
    vmap_free(k->memory, k->pages);
    k->memory = NULL;
}

static void switch_on(struct kernel_sensor *k)
{
    static u32 openings;
    mutex_assert_held(&kernel_lock);
    WRITE_ONCE(k->opening, ++openings);
    if (k->value) {
        refresh(k);
        if (list_empty(&gauges))
            callout_set(gauge_callout(), clock_now_ns() + GAUGE_PERIOD_NS);
        list_push_back(&gauges, &k->gauge_node);
    }
    for (u32 i = 0; i < k->listener_count; i++)
        trace_listen(&k->listeners[i]);
}

static void switch_off(struct kernel_sensor *k)
{
    mutex_assert_held(&kernel_lock);
    if (k->value)
        list_remove(&k->gauge_node);
    for (u32 i = 0; i < k->listener_count; i++)
        trace_unlisten(&k->listeners[i]);
    WRITE_ONCE(k->opening, 0);
    // Rings share a listener, which may go on and be in the middle of a record.
    if (k->kind == KERNEL_SENSOR_RING)
        smp_quiesce_others();
}

int kernel_sensor_begin(struct kernel_sensor *k)
{
    mutex_lock(&kernel_lock);
    int err = allocate(k);
    if (!err)
        attach(k);
    if (!err && !k->users++)
        switch_on(k);
    mutex_unlock(&kernel_lock);
    return err;
}

void kernel_sensor_end(struct kernel_sensor *k)
{
    mutex_lock(&kernel_lock);
    assert(k->users);
    if (!--k->users) {
        switch_off(k);
        free_if_unused(k);
    }
    mutex_unlock(&kernel_lock);
}

// --- from the start ---------------------------------------------------------

// Whether `path` is among the names, separated by commas, of the argument.
static bool asked_for(const char *path)
{
    size_t len = strlen(path);
    if (strcmp(arg_sensors.value, "all") == 0)
        return true;
    for (const char *p = arg_sensors.value; *p;) {
        const char *end = p;
        while (*end && *end != ',')
            end++;
        if ((size_t)(end - p) == len && !memcmp(p, path, len))
            return true;
        p = *end ? end + 1 : end;
    }
    return false;
}

// 1: it was begun, 0: nobody asked.
static u32 begin_if_asked(struct kernel_sensor *k)
{
    if (!asked_for(k->path))
        return 0;
    if (kernel_sensor_begin(k))
        boot_lacks_memory("the sensors of sensors=");
    return 1;
}

void kernel_sensors_start(void)
{
    struct kernel_sensor *ring;
    kernel_switches_init();
    if (!arg_sensors.present)
        return;
    u32 begun = 0;
    LINKER_SET_FOR_EACH(struct kernel_sensor, k, kernel_sensors)
        begun += begin_if_asked(*k);
    for (u32 cpu = 0; (ring = kernel_switches_of(cpu)); cpu++)
        begun += begin_if_asked(ring);
    if (!begun)
        log_printf("sensors=%s: no such sensor; see /sensors\n",
                   arg_sensors.value);
}

// --- files ------------------------------------------------------------------

int kernel_sensor_add_file(struct vnode *dir, const char *name,
                           struct kernel_sensor *k)
{
    struct vnode *v;
    mutex_assert_held(&namespace_lock);
    if (tmpfs_find(dir, name, strlen(name)))
        return -EEXIST;
    u32 mode = k->kind == KERNEL_SENSOR_RING ? RING_FILE_MODE : FILE_MODE;
    int err = tmpfs_create(dir, name, strlen(name), S_IFREG | mode, 0, &v);
    if (err)
        return err;
    err = sensor_create(v, NULL, k);
    if (err) {
        tmpfs_remove_name(tmpfs_node(v));
    } else {
        sensor_of(v)->named = true; // for ever: the name keeps its reference
        mutex_lock(&kernel_lock);
        k->sensor = sensor_of(v);
        attach(k);
        mutex_unlock(&kernel_lock);
    }
    vnode_unref(v);
    return err;
}

int sensor_directory(struct vnode *root, const char *name, size_t len,
                     struct vnode **out)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_node *found = tmpfs_find(root, name, len);
    if (found) {
        *out = &found->v;
        return vnode_type(*out) == S_IFDIR ? 0 : -ENOTDIR;
    }
    int err = tmpfs_create(root, name, len, S_IFDIR | DIRECTORY_MODE, 0, out);
    if (!err)
        vnode_unref(*out); // its name has a reference
    return err;
}

static int publish(struct vnode *root, struct kernel_sensor *k)
{
    const char *slash = strchr(k->path, '/');
    struct vnode *dir;
    assert(slash);
    int err = sensor_directory(root, k->path, (size_t)(slash - k->path), &dir);
    return err ? err : kernel_sensor_add_file(dir, slash + 1, k);
}

int kernel_sensors_publish(struct vnode *root)
{
    struct vnode *heap;
    int err = 0;
    mutex_lock(&namespace_lock);
    LINKER_SET_FOR_EACH(struct kernel_sensor, k, kernel_sensors) {
        if (!err)
            err = publish(root, *k);
    }
    for (u32 cpu = 0; !err && cpu < cpu_count; cpu++)
        err = publish(root, kernel_switches_of(cpu));
    if (!err)
        err = sensor_directory(root, HEAP, strlen(HEAP), &heap);
    if (!err) {
        kernel_gauges_publish(heap);
        err = trace_sensors_publish(root);
    }
    mutex_unlock(&namespace_lock);
    return err;
}
