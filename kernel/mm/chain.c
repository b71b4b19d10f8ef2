// Entries on a chain of pages: see chain.h.

#include "kernel/mm/chain.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/lockdep.h"
#include "lib/format.h"
#include "lib/string.h"

void chain_init(struct chain *c, u32 entry_size)
{
    u32 space = PAGE_SIZE - sizeof(struct chain_page);
    assert(entry_size > 0 && entry_size <= space);
    *c = (struct chain){ .entry_size = entry_size,
                         .per_page = space / entry_size };
}

void chain_free(struct chain *c)
{
    struct chain_page *next;
    for (struct chain_page *p = c->first; p; p = next) {
        next = p->next;
        page_free(p);
    }
    chain_init(c, c->entry_size);
}

// Adds a page at the end.
static bool add_page(struct chain *c)
{
    assert_checked(c->per_page && c->room % c->per_page == 0);
    struct frame *f = frame_alloc(0, FRAME_LOW, FRAME_BUFFER);
    struct chain_page *p = f ? frame_va(f) : NULL;
    struct chain_page *end = c->last;

    if (!p) {
        c->error = -ENOMEM;
        return false;
    }
    p->next = NULL;
    p->used = 0;
    while (end && end->next)
        end = end->next;
    if (end)
        end->next = p;
    else
        c->first = c->last = p;
    c->room += c->per_page;
    return true;
}

int chain_reserve(struct chain *c, u32 n)
{
    while (c->room < n) {
        if (!add_page(c))
            return -ENOMEM;
    }
    return 0;
}

void chain_advance(struct chain *c)
{
    assert_checked(c->last->used == c->per_page);
    assert(c->last->next);
    c->last = c->last->next;
}

void *chain_add(struct chain *c)
{
    void *e;
    if (chain_reserve(c, c->count + 1))
        return NULL;
    e = chain_put(c);
    return memset(e, 0, c->entry_size);
}

void chain_append(struct chain *c, const void *bytes, u32 n)
{
    const u8 *from = bytes;
    assert(c->entry_size == 1);
    while (n > 0 && !chain_reserve(c, c->count + 1)) {
        if (c->last->used == c->per_page)
            chain_advance(c);
        u32 part = MIN(n, c->per_page - c->last->used);
        memcpy(c->last->data + c->last->used, from, part);
        c->last->used += part;
        c->count += part;
        from += part;
        n -= part;
    }
}

// Appends a text of `n` bytes that does not fit into the last page.
static void append_formatted(struct chain *c, u32 n, const char *fmt,
                             va_list args)
{
    char *text = kmalloc(n + 1);
    if (!text) {
        c->error = -ENOMEM;
        return;
    }
    format_va(text, n + 1, fmt, args);
    chain_append(c, text, n);
    kfree(text);
}

// The formatter terminates its output by a NUL, which needs room, too, and is
// overwritten by the next text.
void chain_printf(struct chain *c, const char *fmt, ...)
{
    va_list args;

    assert(c->entry_size == 1);
    if (!c->first && !add_page(c))
        return;
    struct chain_page *p = c->last;
    u32 room = c->per_page - p->used;
    va_start(args, fmt);
    u32 n = (u32)format_va((char *)p->data + p->used, room, fmt, args);
    va_end(args);
    if (n < room) {
        p->used += n;
        c->count += n;
        return;
    }
    va_start(args, fmt);
    append_formatted(c, n, fmt, args);
    va_end(args);
}

void *chain_current(const struct chain_cursor *cur)
{
    if (!cur->page || cur->index >= cur->page->used)
        return NULL;
    return cur->page->data + cur->index * cur->chain->entry_size;
}

void *chain_begin(struct chain_cursor *cur, const struct chain *c)
{
    *cur = (struct chain_cursor){ c, c->first, 0 };
    return chain_current(cur);
}

void *chain_next(struct chain_cursor *cur)
{
    assert_checked(cur->page);
    if (++cur->index >= cur->page->used) {
        cur->page = cur->page->next;
        cur->index = 0;
    }
    return chain_current(cur);
}

int chain_to_user(const struct chain *c, u32 to, u32 size)
{
    assert_may_sleep();
    for (struct chain_page *p = c->first; p && size; p = p->next) {
        u32 part = MIN(p->used * c->entry_size, size);
        int err = copy_to_user(to, p->data, part);
        if (err)
            return err;
        to += part;
        size -= part;
    }
    return 0;
}
