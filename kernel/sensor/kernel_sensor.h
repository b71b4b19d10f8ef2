// The kernel's own sensors, below /sensors as all others. Each is a static
// struct and a registration line.
//
// One that measures costs nothing while it is off: its listeners hear trace
// points from the first open() of its file to the last close, and
// `sensors=PATH,...` on the kernel's command line keeps it on from the start of
// the machine. What it measured stays, and later openings add to it.
#pragma once

#include <strobe/sensor.h>

#include "kernel/trace/point.h"
#include "lib/list.h"
#include "lib/set.h"
#include "lib/types.h"

struct sensor;
struct vnode;

enum kernel_sensor_kind {
    KERNEL_SENSOR_TIMES,           // 1-D, log2 of ns
    KERNEL_SENSOR_TIMES_BY_VECTOR, // 2-D: interrupt vector, log2 of ns
    KERNEL_SENSOR_TIMES_BY_CALL,   // 2-D: number of a system call, log2 of ns
    KERNEL_SENSOR_GAUGE,           // 64 bits
    KERNEL_SENSOR_RING,            // of one CPU
};

struct kernel_sensor {
    const char *path; // below /sensors, at most one directory
    const char *text; // its description
    enum kernel_sensor_kind kind;
    struct trace_listener *listeners; // heard while it is open
    u32 listener_count;
    u64 (*value)(const struct kernel_sensor *k); // a gauge's, in interrupts
    const void *data;                            // for `value`

    // Private to kernel_sensor.c.
    u8 *memory; // header and data; NULL: not allocated
    u32 pages;
    u32 users; // files, and the command line
    struct list gauge_node;
    u32 opening;           // number of the opening; 0: off. Marked access
    struct sensor *sensor; // NULL: /sensors is not mounted yet
};
#define KERNEL_SENSOR(k) LINKER_SET_ADD(kernel_sensors, k)

static inline u32 kernel_sensor_opening(const struct kernel_sensor *k)
{
    return READ_ONCE(k->opening);
}

static inline u32 kernel_sensor_type(const struct kernel_sensor *k)
{
    return k->kind == KERNEL_SENSOR_GAUGE  ? SENSOR_SCALAR
           : k->kind == KERNEL_SENSOR_RING ? SENSOR_RING
                                           : SENSOR_HISTOGRAM;
}

// Counts a time. Called by its listeners alone. NMI-safe.
void kernel_sensor_add(struct kernel_sensor *k, u64 ns);
void kernel_sensor_add_for(struct kernel_sensor *k, u32 what, u64 ns);
// Writes a record into a ring, while it is open: on its CPU, with interrupts
// off, or in an NMI. What has no room is counted there.
void kernel_sensor_write(struct kernel_sensor *k, u32 type, const void *record,
                         u32 bytes);

// Adds a user of the sensor; the first one switches it on. 0, -ENOMEM.
// Thread context, may sleep.
int kernel_sensor_begin(struct kernel_sensor *k);
void kernel_sensor_end(struct kernel_sensor *k);

// Switches on what the command line asks for: on the first thread.
void kernel_sensors_start(void);
// Makes the sensors visible in the new file system. 0, -ENOMEM.
int kernel_sensors_publish(struct vnode *root);
// Adds the file of a sensor to a directory. With namespace_lock held. -EEXIST.
int kernel_sensor_add_file(struct vnode *dir, const char *name,
                           struct kernel_sensor *k);

// The directory `name`, which is created if need be, without a reference. With
// namespace_lock held. -ENOTDIR, -ENOSPC.
int sensor_directory(struct vnode *root, const char *name, size_t len,
                     struct vnode **out);

// The rings of all CPUs, before the first use of kernel_switches_of: the ring
// of a CPU, or NULL.
void kernel_switches_init(void);
struct kernel_sensor *kernel_switches_of(u32 cpu);

// The heap caches' sensors are in this directory (kernel_gauges.c). With
// namespace_lock held.
void kernel_gauges_publish(struct vnode *dir);
// `dir` is about to be looked at: adds the sensors of the caches that are in
// use since the last time. With namespace_lock held.
void kernel_gauges_refresh(struct vnode *dir);
