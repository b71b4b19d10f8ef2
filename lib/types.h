// The basic types and macros that every side of Strobe is written in.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define KIB(n) ((n)*1024u)
#define MIB(n) ((n)*1024u * 1024u)

#define NSEC_PER_SEC 1000000000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_USEC 1000ull

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) \
    ((type *)((char *)(ptr)-offsetof(type, member)))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define MIN(a, b)                      \
    ({                                 \
        __typeof__(a) min_a = (a);     \
        __typeof__(b) min_b = (b);     \
        min_a < min_b ? min_a : min_b; \
    })
#define MAX(a, b)                      \
    ({                                 \
        __typeof__(a) max_a = (a);     \
        __typeof__(b) max_b = (b);     \
        max_a > max_b ? max_a : max_b; \
    })

// `align` must be a power of two.
#define ALIGN_UP(x, align) (((x) + ((align)-1)) & ~(__typeof__(x))((align)-1))
#define ALIGN_DOWN(x, align) ((x) & ~(__typeof__(x))((align)-1))
#define DIV_ROUND_UP(n, d) (((n) + (d)-1) / (d))

#define PACKED __attribute__((packed))
#define NORETURN __attribute__((noreturn))
// A function that a layer above the one that declares it defines
// (tools/build/layers).
#define UPCALL
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define UNUSED __attribute__((unused))
#define NOINLINE __attribute__((noinline))
// Its frame stands also in a file whose functions have none.
#ifdef __clang__
#define KEEPS_FRAME
#else
#define KEEPS_FRAME __attribute__((optimize("no-omit-frame-pointer")))
#endif
#define ALWAYS_INLINE inline __attribute__((always_inline))
// The compiler forgets how it got the pointer `p`: it keeps that in a register
// and does not work it out anew at each use.
// What the compiler cannot know, and need not check.
#define ASSUME(condition) ((condition) ? (void)0 : __builtin_unreachable())
#define OPAQUE(p)                     \
    ({                                \
        __typeof__(p) opaque_p = (p); \
        __asm__("" : "+r"(opaque_p)); \
        opaque_p;                     \
    })
#define MUST_CHECK __attribute__((warn_unused_result))

// A marked access: read or written by another CPU, an interrupt or an NMI at
// the same time, on purpose. Each use says in a comment why that is right.
#ifdef KCSAN
// GCC tells the race detector of 8 bytes that are aligned to 4 without saying
// that they are volatile: such a value is read in halves there, as on i386 it
// is anyway.
static inline u64 read_once_u64(const volatile void *p)
{
    const volatile u32 *half = (const volatile u32 *)p;
    u32 low = half[0];
    return (u64)half[1] << 32 | low;
}
#define READ_ONCE(x)                                           \
    __builtin_choose_expr(sizeof(x) == 8, read_once_u64(&(x)), \
                          *(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)                                       \
    ({                                                         \
        __typeof__(x) once_v = (v);                            \
        if (sizeof(x) == 8) {                                  \
            volatile u32 *once_to = (volatile u32 *)&(x);      \
            const u32 *once_from = (const u32 *)&once_v;       \
            once_to[0] = once_from[0];                         \
            once_to[sizeof(x) / 8] = once_from[sizeof(x) / 8]; \
        } else {                                               \
            *(volatile __typeof__(x) *)&(x) = once_v;          \
        }                                                      \
    })
#else
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
#endif
#define barrier() __asm__ volatile("" ::: "memory")
