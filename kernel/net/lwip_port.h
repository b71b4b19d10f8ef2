// What lwIP calls of the kernel; see net.c for the locking.
#pragma once

#include "lib/types.h"

u32 net_random(void);
u32 sys_now(void); // lwIP's name: milliseconds since the start
void *kmalloc(size_t size);
void *kzalloc(size_t size);
void kfree(void *p);
