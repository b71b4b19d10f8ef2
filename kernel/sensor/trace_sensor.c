// Rings of traces as sensors.
//
// The file has the frames of the ring's memory. Until the trace ends the memory
// is the ring's, and the name in /sensors and the trace have a reference each.
// Then the memory becomes the sensor's, which frees it with itself: read() of
// an open file uses it.

#include "kernel/sensor/trace_sensor.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sensor/kernel_sensor.h"
#include "kernel/sensor/sensor.h"
#include "kernel/task/task.h"
#include "kernel/task/users.h"
#include "lib/format.h"
#include "lib/string.h"

#define FILE_MODE 0400u

static struct vnode *sensors_root; // under namespace_lock

// --- the description --------------------------------------------------------

// The text before the number of the type, and behind it.
#define U8(name) #name ", u8\n"
#define U16(name) #name ", u16\n"
#define U32(name) #name ", u32\n"
#define U64(name) #name ", u64\n"
static const struct {
    u32 type;
    const char *before, *behind;
} types[] = {
#define TYPE(number, name, fields)                          \
    {                                                       \
        number, "#type " name " ", "\n" U32(running) fields \
    }
#define POINT(group, name, fields, when) \
    TYPE(TRACE_##group##_##name, #group "." #name, fields),
#include <strobe/points.def>
#undef POINT
    TYPE(TRACE_R_ENTRY, "function.entry", U32(function) U32(mark)),
    TYPE(TRACE_R_EXIT, "function.exit", U32(function) U64(cycles)),
    TYPE(TRACE_R_CALL, "function.call", U32(function) U32(caller)),
#undef TYPE
};
#undef U8
#undef U16
#undef U32
#undef U64

static char *append(char *to, const char *text)
{
    size_t bytes = strlen(text);
    return (char *)memcpy(to, text, bytes + 1) + bytes;
}

// Of all events: user/libread/sensor_trace_read.c puts the thread before the
// fields.
static const char *describe(void)
{
    static char text[SENSOR_TEXT_MAX];
    mutex_assert_held(&namespace_lock);
    if (text[0])
        return text;
    char *at = append(text, "events on one CPU, of a trace\n");
    for (u32 i = 0; i < ARRAY_SIZE(types); i++) {
        at = append(at, types[i].before);
        at += format(at, 4, "%u", types[i].type);
        at = append(at, types[i].behind);
    }
    assert(at < text + sizeof(text));
    return text;
}

// --- the file ---------------------------------------------------------------

static int find_directory(struct vnode **out)
{
    struct vnode *kernel;
    mutex_assert_held(&namespace_lock);
    int err =
        sensor_directory(sensors_root, "kernel", strlen("kernel"), &kernel);
    return err ? err : sensor_directory(kernel, "trace", strlen("trace"), out);
}

int trace_sensors_publish(struct vnode *root)
{
    struct vnode *trace;
    mutex_assert_held(&namespace_lock);
    sensors_root = root;
    return find_directory(&trace);
}

// Gives the file of a new sensor its contents.
static int fill(struct sensor *s, struct trace_ring *r, u32 uid)
{
    struct sensor_layout layout = { .type = SENSOR_RING };
    u32 pages;
    u8 *memory = trace_ring_memory(r, &pages);
    layout.ring.bytes = r->pages * PAGE_SIZE;
    layout.ring.trace = 1;
    if (!user_charge(uid, pages * PAGE_SIZE, &s->payer))
        return -ENOMEM;
    sensor_header_fill((struct sensor_header *)memory, &layout, describe(),
                       s->owner_id);
    WRITE_ONCE(s->traced, true);
    sensor_attach(s, memory, pages);
    WRITE_ONCE(s->type, SENSOR_RING);
    return 0;
}

// The file, which has a name, and a reference for the caller.
static int create_in(struct vnode *dir, const char *name, u32 uid,
                     struct vnode **out)
{
    mutex_assert_held(&namespace_lock);
    int err =
        tmpfs_create(dir, name, strlen(name), S_IFREG | FILE_MODE, 0, out);
    if (err)
        return err;
    WRITE_ONCE((*out)->uid, uid);
    err = sensor_create(*out, NULL, NULL);
    if (!err) {
        sensor_of(*out)->owner_id = current_task()->id;
        WRITE_ONCE(sensor_of(*out)->named, true);
    }
    return err;
}

static void remove_name(struct sensor *s)
{
    mutex_assert_held(&namespace_lock);
    tmpfs_remove_name(tmpfs_node(s->vnode));
    WRITE_ONCE(s->named, false);
}

static int create(struct trace_ring *r, const char *name, u32 uid,
                  struct sensor **out)
{
    struct vnode *dir, *v = NULL;
    mutex_assert_held(&namespace_lock);
    int err = find_directory(&dir);
    if (!err)
        err = create_in(dir, name, uid, &v);
    if (!err)
        err = fill(sensor_of(v), r, uid);
    if (!err)
        *out = sensor_of(v);
    if (err && v) {
        if (sensor_of(v))
            remove_name(sensor_of(v));
        else
            tmpfs_remove_name(tmpfs_node(v));
        vnode_unref(v);
    }
    return err == -ENOSPC ? -ENOMEM : err;
}

// --- from the beginning to the end of a trace -------------------------------

u32 trace_sensor_number(void)
{
    static u32 traces;
    return __atomic_fetch_add(&traces, 1, __ATOMIC_RELAXED);
}

int trace_sensor_open(struct trace_ring *r, u32 number, u32 cpu, u32 uid,
                      struct sensor **out)
{
    char name[24];
    int err = 0;
    *out = NULL;
    format(name, sizeof(name), "%u.%u", number, cpu);
    mutex_lock(&namespace_lock);
    if (sensors_root)
        err = create(r, name, uid, out);
    mutex_unlock(&namespace_lock);
    return err;
}

void trace_sensor_close(struct sensor *s, struct trace_ring *r)
{
    u32 pages;
    sensor_header_close(s->header);
    mutex_lock(&namespace_lock);
    remove_name(s);
    mutex_unlock(&namespace_lock);
    s->memory = trace_ring_take_memory(r, &pages);
    WRITE_ONCE(s->ended, true);
    vnode_unref(s->vnode);
}
