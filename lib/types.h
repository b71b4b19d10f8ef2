// Basic types and macros, for the kernel, user programs and the host.
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
// A function that is defined by a layer above the one that declares it
// (tools/build/layers).
#define UPCALL
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define UNUSED __attribute__((unused))
#define NOINLINE __attribute__((noinline))
// The function has a frame pointer even in a file compiled without them.
#ifdef __clang__
#define KEEPS_FRAME
#else
#define KEEPS_FRAME __attribute__((optimize("no-omit-frame-pointer")))
#endif
#define ALWAYS_INLINE inline __attribute__((always_inline))
// The function has no patchable entry (arch/text.h). NMIs run only such
// functions, which tools/build/notrace checks.
#define NOTRACE __attribute__((patchable_function_entry(0)))
// ASSUME: a fact that the compiler cannot know and need not check. OPAQUE:
// hides from the compiler how the pointer `p` was computed, so that it keeps it
// in a register instead of recomputing it at each use.
#define ASSUME(condition) ((condition) ? (void)0 : __builtin_unreachable())
#define OPAQUE(p)                     \
    ({                                \
        __typeof__(p) opaque_p = (p); \
        __asm__("" : "+r"(opaque_p)); \
        opaque_p;                     \
    })
#define MUST_CHECK __attribute__((warn_unused_result))

// A marked access: intentionally concurrent with another CPU, an interrupt or
// an NMI. A comment at each use says why that is correct.
#ifdef KCSAN
// GCC does not pass on to the race detector that an 8-byte access aligned to 4
// is volatile. So the value is read in halves, as i386 does anyway.
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
