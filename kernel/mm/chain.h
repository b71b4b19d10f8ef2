// A list of entries of equal size on a chain of pages: it grows without moving
// entries, and allocates single frames only. Used for sysinfo's answers and the
// text of /proc files.
//
// Not locked: it belongs to one thread. An entry lies within one page, at a
// fixed address. Entry size: 1 byte (text) up to a page. When memory runs out,
// `error` is set and further entries are left out; callers need not check each
// addition.
#pragma once

#include "lib/assert.h"
#include "lib/types.h"

struct chain_page {
    struct chain_page *next;
    u32 used; // entries
    u8 data[];
};

struct chain {
    struct chain_page *first, *last;
    // Entries are added to `last`; reserved pages follow it.
    u32 entry_size, per_page;
    u32 count; // entries
    u32 room;  // entries that fit without allocating
    int error; // -ENOMEM once something was left out
};

void chain_init(struct chain *c, u32 entry_size);
// Frees the pages; the chain is empty then.
void chain_free(struct chain *c);

// Makes room for a total of `n` entries. 0, -ENOMEM.
int chain_reserve(struct chain *c, u32 n);

// Moves on to the next reserved page (slow path of chain_put).
void chain_advance(struct chain *c);

// Adds an entry in reserved room: no allocation, any context. Not zeroed.
static ALWAYS_INLINE void *chain_put(struct chain *c)
{
    assert_checked(c->count < c->room);
    if (unlikely(c->last->used == c->per_page))
        chain_advance(c);
    c->count++;
    return c->last->data + c->last->used++ * c->entry_size;
}

// Adds a zeroed entry; NULL and c->error when there is no memory.
void *chain_add(struct chain *c);
// Appends text (entry size 1).
void chain_printf(struct chain *c, const char *fmt, ...) PRINTF(2, 3);
void chain_append(struct chain *c, const void *bytes, u32 n);

// Entries in order:  for (void *e = chain_begin(&cur, c); e; e =
// chain_next(&cur))
struct chain_cursor {
    const struct chain *chain;
    struct chain_page *page;
    u32 index; // of the current entry in its page
};
void *chain_begin(struct chain_cursor *cur, const struct chain *c);
void *chain_next(struct chain_cursor *cur);
void *chain_current(const struct chain_cursor *cur); // NULL: at the end

// Copies the entries to a user buffer, `size` bytes at most. 0 or -EFAULT. May
// sleep.
int chain_to_user(const struct chain *c, u32 to, u32 size);
static inline u32 chain_bytes(const struct chain *c)
{
    return c->count * c->entry_size;
}
