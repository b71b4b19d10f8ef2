// A list of equal entries on a chain of pages: it grows without moving and
// needs no more than single frames. What the sysinfo tree makes its answers in,
// and the files of /proc their text.
//
// Not locked: it belongs to one thread. An entry lies in one page; its address
// stays. Entries are 1 byte (text) to a page in size. Adding never fails
// visibly: `error` is set, what did not fit is left out.
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
    // `last` is where entries are added; reserved pages follow it.
    u32 entry_size, per_page;
    u32 count; // entries
    u32 room;  // entries that fit without allocating
    int error; // -ENOMEM once something was left out
};

void chain_init(struct chain *c, u32 entry_size);
// Gives the pages back; the chain is empty then.
void chain_free(struct chain *c);

// Makes room for `n` entries in all. 0, -ENOMEM.
int chain_reserve(struct chain *c, u32 n);

// The next page of those that are reserved (chain_put's slow path).
void chain_advance(struct chain *c);

// A new entry where room is reserved: no allocation, any context. Not zeroed.
static ALWAYS_INLINE void *chain_put(struct chain *c)
{
    assert_checked(c->count < c->room);
    if (unlikely(c->last->used == c->per_page))
        chain_advance(c);
    c->count++;
    return c->last->data + c->last->used++ * c->entry_size;
}

// A new entry, zeroed; NULL and c->error when there is no memory.
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
void *chain_current(const struct chain_cursor *cur); // NULL: behind the end

// Copies the first `size` bytes that the entries make up to a user's buffer.
// 0 or -EFAULT. May sleep.
int chain_to_user(const struct chain *c, u32 to, u32 size);
static inline u32 chain_bytes(const struct chain *c)
{
    return c->count * c->entry_size;
}
