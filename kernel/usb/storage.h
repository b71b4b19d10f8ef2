// Between the driver of mass storage, in a controller's thread, and the disks
// that it offers (disk.h).
#pragma once

#include "kernel/usb/disk.h"
#include "kernel/usb/xhci.h"

struct disk_request {
    bool write, flush;
    u32 sector, count;
    void *data;
};

// A new disk, which is in the list; whoever asks something of it wakes `wake`.
// NULL: no memory.
struct usb_disk *disk_add(const char *path, u32 sectors, struct waitq *wake);
// It is gone: what is asked of it fails. The driver has no disk any more.
void disk_remove(struct usb_disk *k);
bool disk_asked(const struct usb_disk *k);
// What is asked of it; false: nothing. Each request is answered.
bool disk_request(struct usb_disk *k, struct disk_request *r);
void disk_answer(struct usb_disk *k, int result);
