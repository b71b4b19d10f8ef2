// Between a driver of disks, in a thread of its own, and the disks that it
// offers (block.h).
#pragma once

#include "kernel/block/block.h"
#include "kernel/sync/waitq.h"

struct block_request {
    bool write, flush;
    u64 sector;
    u32 count;
    void *data;
};

struct block_facts {
    const char *bus;   // "usb", "ahci"
    const char *name;  // as users name it
    const char *model; // as the disk says, printable
    u64 sectors;
    bool stick;         // it may be mounted by itself
    bool read_only;     // it cannot be written
    const char *unfit;  // NULL, or why it is listed only; static text
    struct waitq *wake; // of the driver's thread: something is asked
};

// A new disk, which is in the list. NULL: no memory.
struct block_device *block_add(const struct block_facts *facts);
// It is gone: what is asked of it fails. The driver has no disk any more.
void block_remove(struct block_device *d);
// It is given up: as if it were gone, but listed with the reason (static text)
// until it is removed.
void block_fail(struct block_device *d, const char *why);
bool block_asked(const struct block_device *d);
// What is asked of it; false: nothing. Each request is answered.
bool block_request(struct block_device *d, struct block_request *r);
void block_answer(struct block_device *d, int result);
