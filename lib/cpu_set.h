// Sets of CPUs, by their numbers: an array of words.
//
// Only the words of CPUs that exist are used (`cpu_set_words`); the others of
// a set stay 0. So on a machine with at most 32 CPUs each operation handles one
// word.
//
// Operations are plain unless their name says atomic. Those that test a member
// or copy a set read each word by one marked access, so a set that other CPUs
// change atomically may be read at any time; a copy is then consistent only
// within each word.
#pragma once

#include <strobe/abi.h>

#include "lib/types.h"

#define CPU_MAX STROBE_CPUS_MAX

#define CPU_SET_WORD_BITS 32u
#define CPU_SET_WORDS_MAX (CPU_MAX / CPU_SET_WORD_BITS)

struct cpu_set {
    u32 words[CPU_SET_WORDS_MAX];
};

// Words in use, at least 1. Set once, before the second CPU runs.
extern u32 cpu_set_words;

#define CPU_SET_EMPTY ((struct cpu_set){ { 0 } })

static ALWAYS_INLINE u32 cpu_set_word(u32 cpu)
{
    return cpu / CPU_SET_WORD_BITS;
}
static ALWAYS_INLINE u32 cpu_set_bit(u32 cpu)
{
    return 1u << cpu % CPU_SET_WORD_BITS;
}

static ALWAYS_INLINE bool cpu_set_has(const struct cpu_set *s, u32 cpu)
{
    return READ_ONCE(s->words[cpu_set_word(cpu)]) & cpu_set_bit(cpu);
}
static ALWAYS_INLINE void cpu_set_add(struct cpu_set *s, u32 cpu)
{
    s->words[cpu_set_word(cpu)] |= cpu_set_bit(cpu);
}
static ALWAYS_INLINE void cpu_set_remove(struct cpu_set *s, u32 cpu)
{
    s->words[cpu_set_word(cpu)] &= ~cpu_set_bit(cpu);
}
static ALWAYS_INLINE struct cpu_set cpu_set_of(u32 cpu)
{
    struct cpu_set s = CPU_SET_EMPTY;
    cpu_set_add(&s, cpu);
    return s;
}
// CPUs 0 to count - 1.
static ALWAYS_INLINE struct cpu_set cpu_set_below(u32 count)
{
    struct cpu_set s = CPU_SET_EMPTY;
    u32 i = 0;
    for (; i < cpu_set_words && count >= CPU_SET_WORD_BITS; i++) {
        s.words[i] = ~0u;
        count -= CPU_SET_WORD_BITS;
    }
    if (i < cpu_set_words)
        s.words[i] = cpu_set_bit(count) - 1; // the rest: below a word's bits
    return s;
}

// Atomic: full barriers. They return whether the CPU was a member before.
static ALWAYS_INLINE bool cpu_set_add_atomic(struct cpu_set *s, u32 cpu)
{
    u32 bit = cpu_set_bit(cpu), *word = &s->words[cpu_set_word(cpu)];
    return __atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST) & bit;
}
static ALWAYS_INLINE bool cpu_set_remove_atomic(struct cpu_set *s, u32 cpu)
{
    u32 bit = cpu_set_bit(cpu), *word = &s->words[cpu_set_word(cpu)];
    return __atomic_fetch_and(word, ~bit, __ATOMIC_SEQ_CST) & bit;
}

static ALWAYS_INLINE bool cpu_set_is_empty(const struct cpu_set *s)
{
    for (u32 i = 0; i < cpu_set_words; i++) {
        if (READ_ONCE(s->words[i]))
            return false;
    }
    return true;
}
// The same with acquire order: what a CPU did before it removed itself
// atomically has happened.
static ALWAYS_INLINE bool cpu_set_is_empty_acquire(const struct cpu_set *s)
{
    for (u32 i = 0; i < cpu_set_words; i++) {
        if (__atomic_load_n(&s->words[i], __ATOMIC_ACQUIRE))
            return false;
    }
    return true;
}
// Whether there are members but `cpu`.
static ALWAYS_INLINE bool cpu_set_has_other(const struct cpu_set *s, u32 cpu)
{
    for (u32 i = 0; i < cpu_set_words; i++) {
        u32 own = i == cpu_set_word(cpu) ? cpu_set_bit(cpu) : 0;
        if (READ_ONCE(s->words[i]) & ~own)
            return true;
    }
    return false;
}
// Whether all members of `part` are in `s`.
static ALWAYS_INLINE bool cpu_set_includes(const struct cpu_set *s,
                                           const struct cpu_set *part)
{
    for (u32 i = 0; i < cpu_set_words; i++) {
        if (READ_ONCE(part->words[i]) & ~READ_ONCE(s->words[i]))
            return false;
    }
    return true;
}
static ALWAYS_INLINE void cpu_set_copy(struct cpu_set *to,
                                       const struct cpu_set *from)
{
    for (u32 i = 0; i < cpu_set_words; i++)
        WRITE_ONCE(to->words[i], READ_ONCE(from->words[i]));
}
static ALWAYS_INLINE struct cpu_set cpu_set_and(const struct cpu_set *a,
                                                const struct cpu_set *b)
{
    struct cpu_set s = CPU_SET_EMPTY;
    for (u32 i = 0; i < cpu_set_words; i++)
        s.words[i] = READ_ONCE(a->words[i]) & READ_ONCE(b->words[i]);
    return s;
}

// The first member at or after `from`; CPU_MAX: there is none.
static ALWAYS_INLINE u32 cpu_set_next(const struct cpu_set *s, u32 from)
{
    for (u32 i = cpu_set_word(from); i < cpu_set_words; i++) {
        u32 left = READ_ONCE(s->words[i]);
        if (i == cpu_set_word(from))
            left &= -cpu_set_bit(from);
        if (left)
            return i * CPU_SET_WORD_BITS + (u32)__builtin_ctz(left);
    }
    return CPU_MAX;
}

// Each member in ascending order. The set may change in the loop.
#define CPU_SET_FOR_EACH(cpu, set)                          \
    for (u32 cpu = cpu_set_next((set), 0); (cpu) < CPU_MAX; \
         cpu = cpu_set_next((set), (cpu) + 1))

#define CPU_SET_LIST_SIZE 64 // bytes for most sets; longer lists are cut

// Writes the members as a list, as in "0-1,3", with a final zero. A list that
// does not fit ends in "+". Returns `out`.
const char *cpu_set_list(const struct cpu_set *s, char *out, u32 size);
