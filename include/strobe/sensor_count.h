// Counts of 64 bits that any number of writers add to, each in any task, signal
// handler, interrupt or NMI, on a machine of 32 bits: exact, also if a writer
// is killed at any instruction.
//
// The value is high * 2^31 + low. An addition is one locked instruction on
// `low`. Who sees bit 31 of it set afterwards carries: both words change at
// once, to the same value. A writer that is killed before that leaves a count
// that is right, and the next one carries. So `low` must not reach 2^32 before:
// what is added this way is below SENSOR_STEP, and 2048 writers would have to
// be between the two instructions. Larger numbers change both words at once.
//
// Values are modulo 2^63. A count lies at a multiple of 8.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sensor_count {
    uint32_t low, high;
};
#define SENSOR_STEP (1u << 20)
#define SENSOR_CARRY 0x80000000u // bit of `low`

// If the count is still *old, it becomes `next`; else *old is what it is.
static inline bool sensor_count_change(struct sensor_count *c,
                                       struct sensor_count *old,
                                       struct sensor_count next)
{
    bool done;
#if defined(__i386__) || defined(__x86_64__)
    // In QEMU without KVM before 8.0 cmpxchg8b makes the flags of an operand of
    // an instruction before it: the trap flag, virtual 8086 mode. After clc
    // they are in order (docs/install.md).
    __asm__ volatile("clc; lock cmpxchg8b %1"
                     : "=@ccz"(done), "+m"(*c), "+a"(old->low), "+d"(old->high)
                     : "b"(next.low), "c"(next.high)
                     : "memory");
#else
    typedef uint64_t __attribute__((may_alias)) both;
    uint64_t expected, wanted;
    __builtin_memcpy(&expected, old, sizeof(expected));
    __builtin_memcpy(&wanted, &next, sizeof(wanted));
    done = __atomic_compare_exchange_n((both *)c, &expected, wanted, false,
                                       __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    __builtin_memcpy(old, &expected, sizeof(expected));
#endif
    return done;
}

static inline struct sensor_count sensor_count_of(uint64_t value)
{
    struct sensor_count c = { (uint32_t)value & ~SENSOR_CARRY,
                              (uint32_t)(value >> 31) };
    return c;
}

static inline uint64_t sensor_count_value(struct sensor_count c)
{
    return ((uint64_t)c.high << 31) + c.low;
}

static inline struct sensor_count sensor_count_halves_(struct sensor_count *c)
{
    struct sensor_count now;
    now.low = __atomic_load_n(&c->low, __ATOMIC_RELAXED);
    now.high = __atomic_load_n(&c->high, __ATOMIC_RELAXED);
    return now;
}

// Adds any number, 0 to carry only. Not in line: the usual path needs few
// registers.
static __attribute__((noinline, unused)) void
sensor_count_add_large(struct sensor_count *c, uint32_t n)
{
    struct sensor_count old = sensor_count_halves_(c);
    while (!sensor_count_change(c, &old,
                                sensor_count_of(sensor_count_value(old) + n)))
        ;
}

// n < SENSOR_STEP. True: the caller carries, by sensor_count_add_large(c, 0).
static inline bool sensor_count_step(struct sensor_count *c, uint32_t n)
{
    bool carry;
#if defined(__i386__) || defined(__x86_64__)
    __asm__ volatile("lock addl %2, %1"
                     : "=@ccs"(carry), "+m"(c->low)
                     : "ri"(n)
                     : "memory");
#else
    carry = __atomic_add_fetch(&c->low, n, __ATOMIC_RELAXED) & SENSOR_CARRY;
#endif
    return __builtin_expect(carry, 0);
}

static inline void sensor_count_add(struct sensor_count *c, uint32_t n)
{
    if (__builtin_expect(n >= SENSOR_STEP, 0))
        sensor_count_add_large(c, n);
    else if (sensor_count_step(c, n))
        sensor_count_add_large(c, 0);
}

static inline void sensor_count_set(struct sensor_count *c, uint64_t value)
{
    struct sensor_count old = sensor_count_halves_(c);
    while (!sensor_count_change(c, &old, sensor_count_of(value)))
        ;
}

// The value at one time. `high` only changes together with `low`: where it is
// the same before and after, it belongs to `low`. An owner that keeps changing
// it keeps nobody: after 1000 tries any value is taken.
static inline uint64_t sensor_count_read(const struct sensor_count *c)
{
    struct sensor_count now;
    uint32_t tries = 1000;
    do {
        now.high = __atomic_load_n(&c->high, __ATOMIC_ACQUIRE);
        now.low = __atomic_load_n(&c->low, __ATOMIC_ACQUIRE);
    } while (now.high != __atomic_load_n(&c->high, __ATOMIC_RELAXED) &&
             --tries);
    return sensor_count_value(now);
}
