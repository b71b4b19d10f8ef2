// The rings of traces as sensors: /sensors/kernel/trace/N.CPU is the ring of
// the Nth trace since the start of the machine on a CPU. Only the user who has
// begun the trace may read it, and root. It exists as long as the trace; what
// has it open or mapped then keeps it, and sees that it is closed.
#pragma once

#include "kernel/trace/record.h"

struct sensor;
struct vnode;

// Makes the directory. With namespace_lock held. 0, -ENOTDIR, -ENOSPC.
int trace_sensors_publish(struct vnode *root);

// The number of a new trace.
u32 trace_sensor_number(void);
// Makes the ring a sensor of the current task, a file that the user `uid` may
// read. *out: NULL, if there is no /sensors. 0; -ENOMEM: also if it would
// exceed what the user may have. Thread context, may sleep; here and below.
int trace_sensor_open(struct trace_ring *r, u32 number, u32 cpu, u32 uid,
                      struct sensor **out) MUST_CHECK;
// The trace has ended: no CPU writes into the ring. The ring's memory becomes
// the sensor's.
void trace_sensor_close(struct sensor *s, struct trace_ring *r);
