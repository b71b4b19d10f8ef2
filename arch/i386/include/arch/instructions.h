// Single instructions that C cannot express. The lowest layer: lib/ uses them,
// too, on any x86 that it is compiled for.
#pragma once

#include "lib/types.h"

// For every wait loop: under -icount QEMU lets other CPUs run only here.
static ALWAYS_INLINE void cpu_relax(void)
{
    __asm__ volatile("pause" ::: "memory");
}

static ALWAYS_INLINE u64 rdtsc(void)
{
    u32 low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (u64)high << 32 | low;
}

// A marked change of a 32-bit number by its only writer (or the holder of its
// lock), for readers that use READ_ONCE: one instruction, not atomic. The race
// detector still sees a second writer.
#ifdef KCSAN
#define ADD_ONCE(x, n) WRITE_ONCE(x, (x) + (n))
#else
#define ADD_ONCE(x, n)                                              \
    do {                                                            \
        _Static_assert(sizeof(x) == 4, "ADD_ONCE");                 \
        __asm__ volatile("addl %1, %0" : "+m"(x) : "ri"(n) : "cc"); \
    } while (0)
#endif

// Increments a word that NMIs of this CPU change, too: always one instruction.
static ALWAYS_INLINE void word_increment(u32 *word)
{
    __asm__ volatile("incl %0" : "+m"(*word) : : "cc");
}

// The same for another number than 1.
static ALWAYS_INLINE void word_add(u32 *word, u32 n)
{
    __asm__ volatile("addl %1, %0" : "+m"(*word) : "ri"(n) : "cc");
}

// Replaces `old` by `new` if the word is `old`. One instruction for this CPU,
// so no NMI comes between; not atomic for others.
static ALWAYS_INLINE bool word_replace(u32 *word, u32 old, u32 new)
{
    bool done;
    __asm__ volatile("cmpxchgl %3, %1"
                     : "=@ccz"(done), "+m"(*word), "+a"(old)
                     : "r"(new)
                     : "memory");
    return done;
}

// Comparisons with memory, in one instruction each.
static ALWAYS_INLINE bool word_is(const u32 *word, u32 value)
{
    bool is;
    __asm__ volatile("cmpl %2, %1" : "=@cce"(is) : "m"(*word), "r"(value));
    return is;
}
static ALWAYS_INLINE bool word_has(const u32 *word, u32 any_of)
{
    bool has;
    __asm__ volatile("testl %2, %1" : "=@ccnz"(has) : "m"(*word), "i"(any_of));
    return has;
}
static ALWAYS_INLINE bool word_is_odd(const u32 *word)
{
    bool odd;
    __asm__ volatile("testb $1, %1" : "=@ccnz"(odd) : "m"(*word));
    return odd;
}
static ALWAYS_INLINE bool byte_is_set(const bool *byte)
{
    bool set;
    __asm__ volatile("cmpb $0, %1" : "=@ccne"(set) : "m"(*byte));
    return set;
}

// Copies `words` words, then `bytes` bytes, in ascending order.
static ALWAYS_INLINE void memory_copy(void *to, const void *from, size_t words,
                                      size_t bytes)
{
    __asm__ volatile("rep movsl\n\t"
                     "mov %3, %2\n\t"
                     "rep movsb"
                     : "+&D"(to), "+&S"(from), "+&c"(words)
                     : "r"(bytes)
                     : "memory");
}
static ALWAYS_INLINE void memory_fill(void *to, u32 word, size_t words,
                                      size_t bytes)
{
    __asm__ volatile("rep stosl\n\t"
                     "mov %3, %1\n\t"
                     "rep stosb"
                     : "+&D"(to), "+&c"(words)
                     : "a"(word), "r"(bytes)
                     : "memory");
}
static ALWAYS_INLINE void memory_fill_words(void *to, u32 word, size_t words)
{
    __asm__ volatile("rep stosl"
                     : "+D"(to), "+c"(words)
                     : "a"(word)
                     : "memory");
}

// (high * 2^32 + low) / divisor, which must fit: high < divisor.
static ALWAYS_INLINE u32 divide_wide(u32 high, u32 low, u32 divisor,
                                     u32 *remainder)
{
    u32 quotient;
    __asm__("divl %4"
            : "=a"(quotient), "=d"(*remainder)
            : "a"(low), "d"(high), "r"(divisor)
            : "cc");
    return quotient;
}
