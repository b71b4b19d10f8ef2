// Watches the timer behind the clock's events where no CPU can watch another
// one's: on a machine with one CPU, or with one timer for all of them. A second
// timer (the RTC's alarm, else the HPET) looks every EVENT_WATCH_NS whether an
// event is so late that its interrupt must have been lost.
//
// The watch gives its timer to any other user who wants it (timer_reserve), and
// takes another one, if one is free; else the log says that there is no watch.
#pragma once

#include "lib/types.h"

#define EVENT_WATCH_NS (5 * NSEC_PER_SEC)

// As which it has its timer.
extern const char event_watch_owner[];

// Once, when all CPUs run.
void event_watch_start(void);
// Releases the timer, if it has one; until event_watch_resume it has none.
// Thread context with interrupts on.
void event_watch_give_way(void);
// Takes a timer that is free, if it has none. Thread context; with interrupts
// off, and before event_watch_start, it does nothing.
void event_watch_resume(void);
