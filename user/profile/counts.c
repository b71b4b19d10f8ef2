// Samples by program counter: a hash table with open addressing that doubles
// until COUNTS_MAX places. Samples at further addresses are counted as such.
#include "profile.h"

#include <stdlib.h>
#include <string.h>

#define COUNTS_MIN 1024u
#define COUNTS_MAX (1024u * 1024u) // 12 MiB

static struct pc_count *find(struct pc_count *table, uint32_t room, uint32_t pc)
{
    // Fibonacci hashing: the upper bits of the product are the good ones.
    uint32_t i = (pc * 2654435769u) >> 8;

    for (;; i++) {
        struct pc_count *place = &table[i & (room - 1)];
        if (place->samples == 0 || place->pc == pc)
            return place;
    }
}

// Doubles the table. It stays as it is when there is no memory.
static void grow(struct counts *c)
{
    uint32_t room = c->room * 2;
    struct pc_count *table = calloc(room, sizeof(*table));

    if (table == NULL)
        return;
    for (uint32_t i = 0; i < c->room; i++) {
        if (c->table[i].samples != 0)
            *find(table, room, c->table[i].pc) = c->table[i];
    }
    free(c->table);
    c->table = table;
    c->room = room;
}

static void count_pc(struct counts *c, uint32_t pc)
{
    // A quarter stays free, so that every search ends soon.
    if (c->used >= c->room / 4 * 3 && c->room < COUNTS_MAX)
        grow(c);
    struct pc_count *place = find(c->table, c->room, pc);
    if (place->samples == 0) {
        if (c->used >= c->room / 4 * 3) {
            c->uncounted++;
            return;
        }
        place->pc = pc;
        c->used++;
    }
    place->samples++;
}

static void count_sample(struct counts *c, const struct sprofile_sample *s,
                         uint32_t size)
{
    if (size < sizeof(*s) || s->depth == 0 ||
        s->depth > (size - sizeof(*s)) / sizeof(s->pc[0]))
        c->malformed++;
    else if (s->head.flags & SPROFILE_F_KERNEL)
        c->kernel++;
    else
        count_pc(c, s->pc[0]);
}

int counts_init(struct counts *c)
{
    *c = (struct counts){ .room = COUNTS_MIN };
    c->table = calloc(c->room, sizeof(*c->table));
    return c->table != NULL ? 0 : -1;
}

void counts_add_stream(struct counts *c, const void *stream, size_t size)
{
    const char *at = stream;

    while (size >= sizeof(struct sprofile_record)) {
        const struct sprofile_record *r = (const void *)at;
        if (r->size < sizeof(*r) || r->size > size || r->size % 8 != 0) {
            c->malformed++;
            return;
        }
        if (r->type == SPROFILE_R_SAMPLE)
            count_sample(c, (const void *)r, r->size);
        at += r->size;
        size -= r->size;
    }
}

void counts_free(struct counts *c)
{
    free(c->table);
    *c = (struct counts){ 0 };
}
