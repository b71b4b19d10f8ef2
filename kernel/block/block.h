// Disks, as the file system uses them: USB sticks and SATA disks, in sectors of
// 512 bytes.
//
// A disk appears and goes by itself. Who has taken it may use it until
// block_put; once it is gone all transfers fail. `disks_lock` (a mutex) guards
// the list; a transfer holds the disk's own mutex and waits until the driver's
// thread has done it, which takes some seconds at most.
//
// A stick may be mounted by itself. A disk belongs to another system: it is
// used only if somebody names it.
#pragma once

#include "kernel/block/partition.h"

#define BLOCK_AT_ONCE 64u // sectors of a transfer
#define BLOCK_NAME_BYTES 24u
#define BLOCK_MODEL_BYTES 48u

struct block_device;

// The first stick that nobody has (name NULL), or the disk of this name.
// -ENXIO: there is none. -EBUSY: it is taken.
int block_take(const char *name, struct block_device **out);
// `again`: a stick may be taken without its name, too.
void block_put(struct block_device *d, bool again);
bool block_gone(const struct block_device *d);
bool block_read_only(const struct block_device *d);   // it cannot be written
const char *block_name(const struct block_device *d); // "1-2", "sata0"
const char *block_bus(const struct block_device *d);  // "usb", "ahci": for logs
// 1 <= count <= BLOCK_AT_ONCE, within the disk. `data` is kernel memory. 0,
// -EIO, -EROFS.
int block_transfer(struct block_device *d, bool write, u64 sector, u32 count,
                   void *data);
// The disk writes what it has in a cache of its own.
int block_flush(struct block_device *d);

// The partitions: read when first asked for, and kept; if that fails, each call
// tries again. NULL, or the reason why there are none.
const char *block_partitions(struct block_device *d,
                             const struct partition_table **out);
// Reads those of all new disks, and logs what is found on each.
void block_look(void);

// A disk has appeared or gone. In a driver's thread, which serves the disk's
// transfers: no transfer can be waited for here.
UPCALL void block_devices_changed(void);
