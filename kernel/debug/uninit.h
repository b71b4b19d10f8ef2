// Detects kernel memory that is copied to user programs before it was written
// (kernels with KASAN): it would leak another task's data.
//
// Such memory is filled with one word, chosen at random when the machine
// starts: an object of the heap when it is allocated, the free part of a
// thread's stack when a system call begins. Data copied to a user program must
// not contain that word at any aligned place. A member or padding of less than
// four bytes is not detected. A false report has a chance of 2^-24 for each
// word whose four bytes all have their first and last bits set.
#pragma once

#include "lib/types.h"

#ifdef KASAN

// Before the first system call.
void uninit_start(void);
// Heap: fills `size` bytes that were just allocated, a multiple of 4.
void uninit_fill(void *p, size_t size);
// Fills the stack of the current thread below the caller. Interrupts off.
void uninit_fill_stack(void);
// Panics if a part of it, on the stack or in the heap, was never written.
void uninit_check(const void *src, size_t size);

#else

static inline void uninit_start(void)
{
}
static inline void uninit_fill(void *p UNUSED, size_t size UNUSED)
{
}
static inline void uninit_fill_stack(void)
{
}
static inline void uninit_check(const void *src UNUSED, size_t size UNUSED)
{
}

#endif
