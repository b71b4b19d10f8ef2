// The parts of user memory (struct iovec) that one call transfers.
#pragma once

#include "kernel/fs/vfs.h"

#define TRANSFER_MAX 0x7ffff000u // the maximum transfer, as on Linux
#define IOV_MAX 1024u
#define IOV_SMALL 8u

struct vector {
    struct iovec_k small[IOV_SMALL], *parts;
    struct io io;
};

// Copies the parts once, so that the checked values are those that are used. 0,
// -EINVAL (more than IOV_MAX, or one is too long), -EFAULT, -ENOMEM. May sleep.
int vector_get(struct vector *v, u32 addr, u32 count);
// Only after a vector_get that returned 0.
void vector_put(struct vector *v);
