#include "user/libread/row_cache.h"

#include "lib/assert.h"

// Fibonacci hashing (D. Knuth, The Art of Computer Programming, vol. 3, 6.4).
static struct row_cache_slot *slot_of(struct row_cache *c, u32 program, u32 key)
{
    u32 h = (key ^ program << 24) * 0x9e3779b9u;
    return &c->slots[(h >> 16) & (ROW_CACHE_SLOTS - 1)];
}

static bool holds(const struct row_cache_slot *s, u32 program, u32 pc)
{
    return s->program == program &&
           pc - s->row.start < s->row.end - s->row.start;
}

static u32 width(const struct row_cache_slot *s)
{
    return s->row.end - s->row.start;
}

// One slot for the pc, and one for the function: the widest of its rows, which
// is usually its body, so that most new pcs hit it.
static const struct row_cache_slot *
find_slot(struct row_cache *c, const struct cfi_program *p, u32 pc)
{
    struct row_cache_slot *exact = slot_of(c, p->id, pc), read;
    if (holds(exact, p->id, pc))
        return exact;
    const struct cfi_entry *e = cfi_find(p->entries, p->count, pc);
    if (!e)
        return NULL;
    // The function's key differs from every pc's.
    struct row_cache_slot *body = slot_of(c, p->id, ~e->start);
    if (holds(body, p->id, pc)) {
        *exact = *body;
        return exact;
    }
    read.program = p->id;
    read.known = cfi_row_at(&p->sections[e->section], e, pc, &read.row);
    bool same = body->program == p->id && body->row.start >= e->start &&
                body->row.end <= e->end;
    if (!same || width(&read) > width(body))
        *body = read;
    *exact = read;
    return exact;
}

const struct cfi_row *row_cache_find(struct row_cache *c,
                                     const struct cfi_program *p, u32 pc)
{
    assert_checked(p->id != 0);
    const struct row_cache_slot *s = find_slot(c, p, pc);
    return s && s->known ? &s->row : NULL;
}
