// Character devices and /dev.
//
// A device is a `struct char_device`: static ones through CHAR_DEVICE (vfs.h),
// those that are detected at start-up through char_device_register. /dev holds
// a node for each; a node elsewhere (mknod) works by its device number alone.
// `ops` may be NULL if `open` sets file->ops.
#pragma once

#include "kernel/fs/vfs.h"

#define DEVICE_NUMBER(major, minor) ((u32)(major) << 8 | (u32)(minor))

// The device behind a number, or NULL. Any context that may take a spinlock.
const struct char_device *char_device_find(u32 rdev);

// Adds a device permanently, before or after /dev is mounted. `d` must stay
// valid. 0, -EEXIST (the number is taken), -ENOSPC, or an error of mknod.
int char_device_register(const struct char_device *d);

// The open operation of every S_IFCHR vnode (fits vnode_ops.open): sets
// file->ops and calls the device's open, which may set ops and data in turn.
// file->vnode and file->flags must be set. 0, -ENXIO, or an error of the
// device.
int char_device_open(struct vnode *v, struct file *file);

// Fills `buf` from the random generator. Any context but NMI; never sleeps.
void random_bytes(void *buf, size_t n);
