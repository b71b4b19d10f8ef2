// Sensors: measured values in memory that their owner writes and any task may
// map and read. Layouts and the requests of programs: <strobe/sensor.h>.
//
// A sensor is a file of /sensors. A task creates the file and gives it a type,
// and is then its owner: it alone may map the data writable, and what inherits
// its descriptors and mappings, that is children of fork. All others map
// read-only. The first page (the header) is written by the kernel alone.
//
//     new -> open -> closed       a program's
//     off <-> open                the kernel's: open while somebody has the
//     file
//     open -> closed              a trace's, which the kernel writes
//                                 (trace_sensor.h)
//
// The name of an open sensor holds a reference to the vnode. A new one goes
// with its descriptors. A closed one, whose owner has ended or has executed
// another program, keeps its name until a reader of it closes it and is the
// last one, or somebody removes it; then it goes with its last descriptor or
// mapping. Beyond SENSORS_KEPT_MAX closed ones that nobody reads the oldest
// loses its name.
//
// Locking: `sensors_lock` (a mutex) guards the list, the owners, and a task's
// quota. namespace_lock, taken before it, guards `named`. The write_lock of the
// vnode, taken before both, guards the change from new to open.
#pragma once

#include <strobe/sensor.h>

#include "kernel/fs/tmpfs.h"
#include "kernel/mm/chain.h"

#define SENSORS_KEPT_MAX 128u

struct kernel_sensor;
struct payer;
struct task;

struct sensor {
    struct list node; // in the list of all
    u32 id;           // unique while the machine runs
    struct vnode *vnode;
    bool named;         // its name holds a reference to the vnode. Marked
    struct task *owner; // referenced; NULL: the kernel's, or closed
    u32 owner_id;       // stays when it is closed; 0: the kernel
    u32 bytes;          // of header and data; 0: new. Marked: set once
    u32 type;           // enum sensor_type, of a program's. Marked: set once
    struct payer *payer;
    u32 readers; // open files of others than the owner; atomic
    // The kernel's address of the first page, mapped as long as the sensor
    // exists. NULL: new, or the kernel's and off. Marked: sensor_text reads it.
    struct sensor_header *header;
    struct kernel_sensor *kernel; // NULL: a program's, or a trace's
    bool traced;                  // a trace's. Marked: set with `bytes`
    bool ended;                   // the trace has. Marked: set once
    void *memory; // of one that has ended: header and data, freed with it
};

static inline struct sensor *sensor_of(const struct vnode *v)
{
    return v->data;
}

// sensor_object.c

// A new sensor of a task, or of the kernel (NULL), with `k` or without. 0,
// -ENOMEM; -EDQUOT: the task has too many. `v` gets it as its data.
int sensor_create(struct vnode *v, struct task *t, struct kernel_sensor *k);
// Frees it with its data, when the vnode has no users any more.
void sensor_free(struct sensor *s);
// Gives a new sensor its type, by a checked layout, and zeroed data. 0,
// -ENOMEM, -EBUSY: it has a type; -EDQUOT: beyond the quota of the task or the
// user. Under the vnode's write_lock; sleeps.
int sensor_open_for(struct sensor *s, const struct sensor_layout *layout,
                    u32 data_bytes, const char *text);
// Makes `pages` of vmap_alloc(), the header first, the contents of a sensor of
// the kernel or of a trace; NULL, 0: it has none. They must exist while the
// file is mapped.
void sensor_attach(struct sensor *s, void *memory, u32 pages);
// The frame of a page of the file, or NULL. Under the vnode's lock.
struct frame *sensor_frame(const struct sensor *s, u32 index);
// Whether its owner has ended.
bool sensor_closed(const struct sensor *s);
// Calls `fn` for each sensor, in the order of creation, without locks, with a
// reference to its vnode.
void sensors_each(void (*fn)(struct sensor *s, void *arg), void *arg);
// "new", "open", "closed", "off".
const char *sensor_state(const struct sensor *s);

// sensor_fs.c

// Takes a reference, unless the last one is gone.
bool sensor_ref_if_used(struct vnode *v);
// Gives the name of the sensor, if it still has one, a reference to the vnode,
// or takes that away. The caller has a reference. Sleeps.
void sensor_set_named(struct sensor *s, bool named);

// sensor_request.c

// The request SENSOR_CREATE, with its argument's user address.
int sensor_request(struct sensor *s, u32 arg);
void sensor_header_fill(struct sensor_header *h,
                        const struct sensor_layout *layout, const char *text,
                        u32 owner);
void sensor_header_close(struct sensor_header *h);

// sensor_text.c: the name of its type, "" while it has none; and
// the contents of the file for read(): description and present values. 0 or
// -errno.
const char *sensor_type_name(const struct sensor *s);
int sensor_text(struct chain *text, void *sensor);
