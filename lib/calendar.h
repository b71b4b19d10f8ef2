// A calendar queue: events ordered by time; events of equal time are in the
// order of insertion.
//
// After R. Brown, "Calendar queues", CACM 31 (10), 1988: an event is filed
// under its day, and only today's page is searched. Brown's calendar has days
// of one length and must be resized, as a whole, when that no longer suits the
// events. This one has pages of several scales: 32 slots of 1 ns, 32 of 32 ns,
// 32 of 1024 ns, ... A near event is filed to the nanosecond, a far one
// coarsely; when its time comes, the events of a coarse slot are filed again,
// each on a finer page. So nothing is ever resized or allocated, and no
// distribution of times makes it slow: insertion, removal and the query for the
// next time take a constant number of steps, regardless of the number of
// events, and an event is filed again at most once a page. (The data structure:
// hierarchical timing wheels, Varghese and Lauck, SOSP 1987, operated by the
// radix heap's rule, Ahuja et al., JACM 37 (2), 1990.)
//
// Not locked; the owner does that.
#pragma once

#include "lib/list.h"

#define CALENDAR_SLOT_BITS 5u
#define CALENDAR_SLOTS (1u << CALENDAR_SLOT_BITS)
#define CALENDAR_PAGES 13u
#define CALENDAR_NEVER (~0ull)
_Static_assert(CALENDAR_SLOT_BITS *CALENDAR_PAGES >= 64, "every time fits");
_Static_assert(CALENDAR_SLOTS <= 32 && CALENDAR_PAGES <= 32, "bits of a word");
_Static_assert(CALENDAR_PAGES *CALENDAR_SLOTS <= UINT16_MAX, "event.place");

struct calendar_event {
    struct list node;
    u64 at;
    u16 place; // page and slot
};

struct calendar_slot {
    struct list events; // valid while the slot's bit is set
    u64 earliest;       // no event of the slot is earlier
};

// All zeroes: an empty calendar that begins at time 0.
struct calendar {
    // Times before `origin` are over: no event is filed under one. All pages
    // cover the time around it, so an event's place follows from its time and
    // `origin`: the page from the highest bits in which they differ, the slot
    // from the event's bits there.
    u64 origin;
    u32 pages_used; // a bit for each page that has an event
    u32 slots_used[CALENDAR_PAGES];
    struct calendar_slot slots[CALENDAR_PAGES * CALENDAR_SLOTS];
};

// Files an event that is in no calendar. Past times are legal.
void calendar_insert(struct calendar *c, struct calendar_event *e, u64 at);
void calendar_remove(struct calendar *c, struct calendar_event *e);
// Removes and returns the first event at or before `now`; NULL: there is none.
// `now` does not run backwards.
struct calendar_event *calendar_take(struct calendar *c, u64 now);
// When to call calendar_take next: at the time of the first event or, if an
// earlier one was removed, possibly before it. CALENDAR_NEVER: it is empty.
u64 calendar_next(const struct calendar *c);
