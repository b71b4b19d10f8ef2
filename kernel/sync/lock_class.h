// What locks are used for: all locks of one kind and name are a class, whose
// uses are counted (system.locks, `stats --locks`).
//
// Taking a free lock adds LOCK_STEP to a word of its class and CPU, one
// instruction and no cache line that another CPU writes. When the word
// overflows, about every 63rd time, the lock's holder measures how long it has
// it. So acquisitions are exact (what was added, divided by the step), holds
// are a sample; waiting is measured each time. A lock learns its class when it
// is taken first.
#pragma once

#include "arch/cpu.h"

enum lock_kind { LOCK_SPIN, LOCK_MUTEX };

// 2^32 / 63.4: near no simple ratio, so that the samples do not fall into step
// with what takes the locks.
#define LOCK_STEP 67742999u

// A class is found by its name's address, in the part of its kind, at the place
// that the address gives or behind it. Set once, from NULL.
#define LOCK_SPIN_CLASSES 128u
#define LOCK_MUTEX_CLASSES 64u
extern const char *lock_class_names[LOCK_CLASSES];

static ALWAYS_INLINE u32 lock_class_place(const char *name, enum lock_kind kind)
{
    return kind == LOCK_SPIN
               ? (u32)name / 4 % LOCK_SPIN_CLASSES
               : LOCK_SPIN_CLASSES + (u32)name / 4 % LOCK_MUTEX_CLASSES;
}

// The class of a lock of this name if it is found at once, else 0.
static ALWAYS_INLINE u32 lock_class_known(const char *name, enum lock_kind kind)
{
    u32 class = lock_class_place(name, kind);
    return READ_ONCE(lock_class_names[class]) == name ? class : 0;
}
// Finds or makes it. Any context but NMI. Never fails: classes for which there
// is no room share class 0, "(others)". `name` must stay where it is.
u32 lock_class_of(const char *name, enum lock_kind kind);

// Counts that a lock of this class was taken here. False: this time it is to be
// measured (lock_class_overflowed, and lock_class_held at its end).
static ALWAYS_INLINE bool lock_class_taken(u32 class)
{
    return likely(!this_cpu_add_carries(locks_taken, class, LOCK_STEP));
}
void lock_class_overflowed(u32 class);
// What is measured, in TSC cycles.
void lock_class_waited(u32 class, u64 cycles);
void lock_class_held(u32 class, u64 cycles);
