// Disks on USB, as the file system uses them: sectors of 512 bytes.
//
// A disk appears and goes by itself. Who has taken it may use it until
// usb_disk_put; once it is gone all transfers fail. `disks_lock` (a mutex)
// guards the list; a transfer holds the disk's own mutex and waits until the
// controller's thread has done it, which takes some seconds at most.
#pragma once

#include "lib/types.h"

#define DISK_SECTOR 512u
#define DISK_AT_ONCE 64u // sectors of a transfer

struct usb_disk;

// The first disk that is there and that nobody has; NULL: there is none.
struct usb_disk *usb_disk_take(void);
// `again`: others may take it, while it is there.
void usb_disk_put(struct usb_disk *k, bool again);
bool usb_disk_gone(const struct usb_disk *k);
const char *usb_disk_path(const struct usb_disk *k); // "1-2", as in system.usb
u32 usb_disk_sectors(const struct usb_disk *k);
// 1 <= count <= DISK_AT_ONCE, within the disk. `data` is kernel memory. 0,
// -EIO, -EROFS.
int usb_disk_transfer(struct usb_disk *k, bool write, u32 sector, u32 count,
                      void *data);
// The disk writes what it has in a cache of its own.
int usb_disk_flush(struct usb_disk *k);

// A disk has appeared or gone. In a controller's thread, which serves the
// disk's transfers: no transfer can be waited for here.
UPCALL void usb_disks_changed(void);
