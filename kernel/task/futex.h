// Futexes: words of user memory that threads sleep on (futex(2)).
#pragma once

#include "lib/types.h"

#define FUTEX_ANY (~0u) // bitset

// Sleeps while *addr == value, until woken. `private`: the word is only used by
// this address space. 0, -EAGAIN (the value differs), -EFAULT, -ETIMEDOUT,
// -EINTR, -EINVAL (not aligned).
int futex_wait(u32 addr, bool private, u32 value, u64 deadline, u32 bitset);
// Wakes up to `count` waiters. Returns the number of waiters woken.
int futex_wake(u32 addr, bool private, u32 count, u32 bitset);
// Wakes up to `wake` waiters and moves up to `move` further ones to `to`; with
// `expect`, only if *addr == *expect (-EAGAIN). Returns the number of waiters
// woken or moved.
int futex_requeue(u32 addr, u32 to, bool private, u32 wake, u32 move,
                  const u32 *expect);
// The wake-up by the kernel for CHILD_CLEARTID.
void futex_wake_user(u32 addr, u32 count);
