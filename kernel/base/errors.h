// Error counters: errors of the machine that do not stop it, such as an
// interrupt that no driver expects, or a lost one. One static struct and one
// registration line each; system.errors lists all of them.
#pragma once

#include "lib/set.h"

struct error_counter {
    const char *name;    // at most 31 characters
    const char *meaning; // how it is handled; at most 63 characters
    u32 (*read)(void);   // NULL: the count is `count`
    u32 count;           // atomic
};
// ERROR_COUNTER(doubled, "timer interrupts, doubled", "ignored") declares a
// static struct; ERROR_COUNTER_READ one whose count is kept elsewhere.
#define ERROR_COUNTER(id, text, effect)                                   \
    static struct error_counter id = { .name = text, .meaning = effect }; \
    LINKER_SET_ADD(error_counters, id)
#define ERROR_COUNTER_READ(id, text, effect, fn)          \
    static struct error_counter id = { .name = text,      \
                                       .meaning = effect, \
                                       .read = fn };      \
    LINKER_SET_ADD(error_counters, id)

// Any context, NMI included.
static inline void error_count(struct error_counter *e)
{
    __atomic_fetch_add(&e->count, 1, __ATOMIC_RELAXED);
}

static inline u32 error_counter_read(const struct error_counter *e)
{
    return e->read ? e->read() : READ_ONCE(e->count);
}
