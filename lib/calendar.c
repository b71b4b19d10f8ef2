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

// The page of the first events, and their slot. All events on a finer page are
// before all events on a coarser one, because the coarse slot that contains
// `origin` is always empty.
static u32 first_page(const struct calendar *c)
{
    assert_checked(c->pages_used);
    return (u32)__builtin_ctz(c->pages_used);
}
static u32 first_place(const struct calendar *c, u32 page)
{
    assert_checked(c->slots_used[page]);
    return page * CALENDAR_SLOTS + (u32)__builtin_ctz(c->slots_used[page]);
}

static void add_to_slot(struct calendar *c, struct calendar_event *e, u64 at)
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

// As mark_empty for the first slot: both bits are the lowest set bits.
static void mark_first_empty(struct calendar *c, u32 page)
{
    assert_checked(page == first_page(c));
    c->slots_used[page] &= c->slots_used[page] - 1;
    if (!c->slots_used[page])
        c->pages_used &= c->pages_used - 1;
}

void calendar_insert(struct calendar *c, struct calendar_event *e, u64 at)
{
    e->at = at;
    add_to_slot(c, e, at < c->origin ? c->origin : at);
}

static bool has_one_event(const struct calendar_slot *s)
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
    } else if (has_one_event(s)) {
        u64 at = list_first(&s->events, struct calendar_event, node)->at;
        s->earliest = at < c->origin ? c->origin : at;
    }
}

// Redistributes the events of the first slot: its time has come, and the finer
// pages, which are empty, now cover it. Done in the slot's order, which keeps
// the order of events with equal times.
static NOINLINE void redistribute(struct calendar *c, u32 page,
                                  struct calendar_slot *s)
{
    assert_checked(page > 0); // slots of the finest page are exact
    mark_first_empty(c, page);
    struct calendar_event *e, *next;
    list_for_each_safe(e, next, &s->events, node)
        add_to_slot(c, e, e->at);
}

struct calendar_event *calendar_take(struct calendar *c, u64 now)
{
    while (c->pages_used) {
        u32 page = first_page(c);
        struct calendar_slot *s = OPAQUE(&c->slots[first_place(c, page)]);
        if (s->earliest > now)
            return NULL;
        c->origin = s->earliest;
        struct calendar_event *e =
            list_first(&s->events, struct calendar_event, node);
        if (has_one_event(s)) {
            mark_first_empty(c, page);
            list_init(&e->node);
            return e;
        }
        if (page == 0) { // equal times: the first is the earliest
            list_remove(&e->node);
            return e;
        }
        redistribute(c, page, s);
    }
    return NULL;
}

u64 calendar_next(const struct calendar *c)
{
    if (!c->pages_used)
        return CALENDAR_NEVER;
    return OPAQUE(&c->slots[first_place(c, first_page(c))])->earliest;
}
