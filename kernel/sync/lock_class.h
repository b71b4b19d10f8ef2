// Lock statistics: all locks of one kind and name form a class, whose uses are
// counted (system.locks, `stats --locks`).
//
// Taking a lock adds LOCK_STEP to a per-CPU word of its class: one instruction,
// and no cache line that another CPU writes. When the word overflows, about
// every 63rd time, the holder measures this hold. So acquisitions are exact
// (the sum divided by the step), hold times are sampled, and every wait is
// measured. A lock gets its class when it is first taken.
#pragma once

#include "arch/cpu.h"

enum lock_kind { LOCK_SPIN, LOCK_MUTEX };

// 2^32 / 63.4: not near a simple ratio, so that the samples do not lock onto a
// periodic pattern of acquisitions.
#define LOCK_STEP 67742999u

// Hash table with linear probing, one part for each kind; the key is the name's
// address. An entry is set once, from NULL.
#define LOCK_SPIN_CLASSES 128u
#define LOCK_MUTEX_CLASSES 64u
extern const char *lock_class_names[LOCK_CLASSES];

static ALWAYS_INLINE u32 lock_class_place(const char *name, enum lock_kind kind)
{
    return kind == LOCK_SPIN
               ? (u32)name / 4 % LOCK_SPIN_CLASSES
               : LOCK_SPIN_CLASSES + (u32)name / 4 % LOCK_MUTEX_CLASSES;
}

// The class of this name if it is at its hash position, else 0.
static ALWAYS_INLINE u32 lock_class_known(const char *name, enum lock_kind kind)
{
    u32 class = lock_class_place(name, kind);
    return READ_ONCE(lock_class_names[class]) == name ? class : 0;
}
// Finds or creates the class. Any context but NMI. Never fails: classes for
// which there is no room share class 0, "(others)". `name` must stay valid, at
// the same address.
u32 lock_class_of(const char *name, enum lock_kind kind);

// Counts an acquisition of a lock of this class on this CPU. False: this hold
// is to be measured (lock_class_overflowed now, lock_class_held at its end).
static ALWAYS_INLINE bool lock_class_taken(u32 class)
{
    return likely(!this_cpu_add_carries(locks_taken, class, LOCK_STEP));
}
void lock_class_overflowed(u32 class);
// Record a measured wait or hold, in TSC cycles.
void lock_class_waited(u32 class, u64 cycles);
void lock_class_held(u32 class, u64 cycles);
