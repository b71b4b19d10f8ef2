// A circular, doubly linked, intrusive list. The head is a node of its own; an
// unlinked node points to itself once list_init or list_remove_init has run.
#pragma once

#include "lib/assert.h"
#include "lib/types.h"

struct list {
    struct list *next, *prev;
};

#define LIST_INIT(name)  \
    {                    \
        &(name), &(name) \
    }

static inline void list_init(struct list *l)
{
    l->prev = l;
    WRITE_ONCE(l->next, l);
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

// Without the list's lock: the answer may be out of date at once. It reads only
// `next`, which is written with a marked access.
static inline bool list_empty_unlocked(const struct list *l)
{
    return READ_ONCE(l->next) == l;
}

static inline void list_insert_between(struct list *n, struct list *prev,
                                       struct list *next)
{
    assert_checked(prev->next == next && next->prev == prev);
    n->prev = prev;
    n->next = next;
    WRITE_ONCE(prev->next, n);
    next->prev = n;
}

static inline void list_push_front(struct list *head, struct list *n)
{
    list_insert_between(n, head, head->next);
}

static inline void list_push_back(struct list *head, struct list *n)
{
    list_insert_between(n, head->prev, head);
}

// Unlinks `n` and leaves it pointing to itself: removing twice is harmless.
static inline void list_remove(struct list *n)
{
    assert_checked(n->prev->next == n && n->next->prev == n);
    WRITE_ONCE(n->prev->next, n->next);
    n->next->prev = n->prev;
    list_init(n);
}

#define list_entry(node, type, member) container_of(node, type, member)
#define list_first(head, type, member) list_entry((head)->next, type, member)

// The link in `pos`. At the end of the list `pos` is not an object but an
// address computed from the head, which may not even be aligned for its type.
#define list_link(pos, member) \
    ((struct list *)((char *)(pos) + offsetof(__typeof__(*(pos)), member)))

#define list_next(pos, member) \
    list_entry(list_link(pos, member)->next, __typeof__(*(pos)), member)

#define list_for_each(pos, head, member)                           \
    for (pos = list_entry((head)->next, __typeof__(*pos), member); \
         list_link(pos, member) != (head); pos = list_next(pos, member))

// The same, but `pos` may be removed (and freed) in the body.
#define list_for_each_safe(pos, tmp, head, member)                 \
    for (pos = list_entry((head)->next, __typeof__(*pos), member), \
        tmp = list_next(pos, member);                              \
         list_link(pos, member) != (head);                         \
         pos = tmp, tmp = list_next(pos, member))
