// Argument values: resolves a token when its operation is made. The contents of
// a structure depend on the token's number alone, except its addresses, ids and
// descriptors, which are current ones.
#include "values.h"

#include <string.h>
#include <sys/syscall.h>

// --- descriptors, tasks, addresses

uint32_t descriptor(struct worker *w, struct draw *d)
{
    uint32_t other = draw_below(d, 32);
    if (other == 0)
        return PICK(d, -1, -100, 0, 1, 2, 1023, 1024, 0x7fffffff);
    return (uint32_t)w->fds[draw_below(d, SLOTS)];
}

uint32_t victim(struct draw *d)
{
    switch (draw_below(d, 8)) {
    case 0:
        return 0; // the caller, or its group
    case 1:
        return 0x7fff0000u; // no task has it
    case 2:
        return (uint32_t)-raw_call(SYS_getpgid, 0, 0, 0, 0);
    case 3:
    case 4:
        return (uint32_t)raw_call(SYS_getpid, 0, 0, 0, 0);
    default:;
        uint32_t tid = own_lane->progress[draw_below(d, WORKERS)].tid;
        return tid != 0 ? tid : 0x7fff0000u;
    }
}

static uint32_t any_task(struct draw *d)
{
    if (draw_below(d, 2))
        return victim(d);
    return PICK(d, 0, 1, 2, 3, 5, -1,
                (uint32_t)raw_call(SYS_getppid, 0, 0, 0, 0));
}

uint32_t in_arena(struct draw *d)
{
    uint32_t page = draw_below(d, 2 * ARENA_PAGES);
    uint32_t offset = draw_below(d, 4) ? 0 : draw_below(d, PAGE);
    return ARENA + page * PAGE + offset;
}

static uint32_t before_edge(struct worker *w, struct draw *d)
{
    uint32_t bytes = draw_below(d, 4) ? draw_below(d, 80) : draw_below(d, PAGE);
    return (uint32_t)w->page + PAGE - bytes;
}

uint32_t bad_address(struct draw *d)
{
    return PICK(d, 0x10, 0xfff, 0xbffffffc, 0xc0000000, 0xc0000010, 0xc0100000,
                0xf8000000, 0xfec00000, 0xfffff000, 0xfffffffc, 0xffffffff,
                0x80000000, 0x7fffffff, 0xbffff000);
}

static uint32_t own_address(struct worker *w, struct draw *d)
{
    return PICK(d, (uint32_t)grammar_make, (uint32_t)calls, (uint32_t)&w,
                (uint32_t)w, 0x8048000, 0xffffe000u);
}

uint32_t buffer(struct worker *w, struct draw *d)
{
    switch (draw_below(d, 16)) {
    case 0:
        return bad_address(d);
    case 1:
        return before_edge(w, d);
    default:
        return in_arena(d);
    }
}
// --- arguments

// Returns its address. Some structures end where an unmapped page begins.
static uint32_t structure(struct worker *w, struct draw *d, uint32_t kind,
                          uint32_t place)
{
    uint32_t *room = w->rooms[place];
    uint32_t bytes = put_structure(w, d, kind, room);
    if (draw_below(d, 8))
        return (uint32_t)room;
    char *at = w->page + PAGE - bytes;
    memcpy(at, room, bytes);
    return (uint32_t)at;
}

uint32_t value_of(struct worker *w, const struct token *t, uint32_t place,
                  bool spares_others)
{
    struct draw d = draw_of(t->value, t->kind);

    switch (t->kind) {
    case TOKEN_num:
        return t->value;
    case TOKEN_length:
        return w->last_length;
    case TOKEN_fd:
        return descriptor(w, &d);
    case TOKEN_socket:
        return draw_below(&d, 4)
                   ? (uint32_t)w->fds[SLOTS - 1 - (draw_below(&d, 2))]
                   : descriptor(w, &d);
    case TOKEN_memory:
        return in_arena(&d);
    case TOKEN_edge:
        return before_edge(w, &d);
    case TOKEN_bad:
        return bad_address(&d);
    case TOKEN_own:
        return own_address(w, &d);
    case TOKEN_task:
        return spares_others ? any_task(&d) : victim(&d);
    case TOKEN_victim:
        return victim(&d);
    default:
        return structure(w, &d, t->kind, place);
    }
}
