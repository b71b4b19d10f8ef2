#include "lib/calendar.h"

#include "lib/assert.h"

static u32 highest_bit(u64 n)
{
    u32 high = (u32)(n >> 32);
    return high ? 63 - (u32)__builtin_clz(high)
                : 31 - (u32)__builtin_clz((u32)n | 1);
}

static u32 place_of(const struct calendar *c, u64 at)
{
    assert_checked(at >= c->origin);
    u32 page = highest_bit(at ^ c->origin) / CALENDAR_SLOT_BITS;
    u32 slot = (u32)(at >> (page * CALENDAR_SLOT_BITS)) % CALENDAR_SLOTS;
    return page * CALENDAR_SLOTS + slot;
}

// The slot of the first events. All on a finer page are before all on a rougher
// one, for the rough slot of the time around `origin` is always empty.
static u32 first_place(const struct calendar *c)
{
    assert_checked(c->pages_used);
    u32 page = (u32)__builtin_ctz(c->pages_used);
    return page * CALENDAR_SLOTS + (u32)__builtin_ctz(c->slots_used[page]);
}

static void file(struct calendar *c, struct calendar_event *e, u64 at)
{
    u32 place = place_of(c, at), page = place / CALENDAR_SLOTS;
    u32 bit = 1u << place % CALENDAR_SLOTS;
    struct calendar_slot *s = &c->slots[place];
    e->place = (u16)place;
    if (!(c->slots_used[page] & bit)) {
        c->slots_used[page] |= bit;
        c->pages_used |= 1u << page;
        list_init(&s->events);
        s->earliest = at;
    } else if (at < s->earliest) {
        s->earliest = at;
    }
    list_push_back(&s->events, &e->node);
}

static void mark_empty(struct calendar *c, u32 place)
{
    assert_checked(place < CALENDAR_PAGES * CALENDAR_SLOTS);
    u32 page = place / CALENDAR_SLOTS;
    c->slots_used[page] &= ~(1u << place % CALENDAR_SLOTS);
    if (!c->slots_used[page])
        c->pages_used &= ~(1u << page);
}

void calendar_insert(struct calendar *c, struct calendar_event *e, u64 at)
{
    e->at = at;
    file(c, e, at < c->origin ? c->origin : at);
}

static bool alone(const struct calendar_slot *s)
{
    return s->events.next == s->events.prev;
}

void calendar_remove(struct calendar *c, struct calendar_event *e)
{
    assert_checked(e->place < CALENDAR_PAGES * CALENDAR_SLOTS);
    struct calendar_slot *s = &c->slots[e->place];
    assert_checked(c->slots_used[e->place / CALENDAR_SLOTS] >>
                       e->place % CALENDAR_SLOTS &
                   1);
    list_remove(&e->node);
    if (list_empty(&s->events)) {
        mark_empty(c, e->place);
    } else if (alone(s)) {
        u64 at = list_first(&s->events, struct calendar_event, node)->at;
        s->earliest = at < c->origin ? c->origin : at;
    }
}

// The first slot's time has come: it becomes the time that the finer pages show
// (they are empty). In the order of the slot, which keeps equals in order.
static void file_again(struct calendar *c, u32 place)
{
    assert_checked(place >= CALENDAR_SLOTS); // on a finer page it is exact
    struct calendar_slot *s = &c->slots[place];
    assert_checked(s->earliest >= c->origin);
    c->origin = s->earliest;
    mark_empty(c, place);
    struct calendar_event *e, *next;
    list_for_each_safe(e, next, &s->events, node)
        file(c, e, e->at);
}

struct calendar_event *calendar_take(struct calendar *c, u64 now)
{
    while (c->pages_used) {
        u32 place = first_place(c);
        struct calendar_slot *s = &c->slots[place];
        if (s->earliest > now)
            return NULL;
        if (place < CALENDAR_SLOTS || alone(s)) { // the first is the earliest
            struct calendar_event *e =
                list_first(&s->events, struct calendar_event, node);
            c->origin = s->earliest;
            list_remove(&e->node);
            if (list_empty(&s->events))
                mark_empty(c, place);
            return e;
        }
        file_again(c, place);
    }
    return NULL;
}

u64 calendar_next(const struct calendar *c)
{
    return c->pages_used ? c->slots[first_place(c)].earliest : CALENDAR_NEVER;
}
