// A watchdog for lost interrupts of the timer behind the clock's events. CPUs
// watch the timers of each other (kernel/sched/hang.c), but may lose all at
// once: AMD's erratum 400 (Revision Guide for family 10h processors) stops the
// LAPIC timers of all CPUs that are idle. So a second timer (the RTC's alarm,
// else the HPET) checks every EVENT_WATCH_NS whether an event is so late that
// its interrupt must have been lost.
//
// An event timer that loses several interrupts in a row is replaced, and so is
// the watch's own timer, if its interrupts do not come. (v86's RTC has periodic
// interrupts but no alarm.)
//
// The watch releases its timer for any other user that wants it
// (timer_reserve), and takes another one, if one is free. Else it joins the
// user: its checks go with the interrupts of the user's timer. Where there is
// none of these the log reports that there is no watch.
#pragma once

#include "kernel/time/timer.h"

#define EVENT_WATCH_NS (5 * NSEC_PER_SEC)

// The owner name under which the watch reserves its timer.
extern const char event_watch_owner[];

// Called once, when all CPUs run.
void event_watch_start(void);
// Replaces timers that have failed. Called every few seconds, by one thread.
void event_watch_check(void);
// Releases the watch's timer, if any; until event_watch_resume the watch has
// none. Thread context with interrupts on.
void event_watch_release(void);
// If the watch has no timer: puts its checks behind the function of this timer,
// which is claimed for a start, and silent. Does not sleep.
void event_watch_join(struct timer *t);
// This timer has been stopped, and is released.
void event_watch_leave(const struct timer *t);
// Makes the checks that an NMI has asked for. In interrupts.
void event_watch_deferred(void);
// Takes a free timer, if the watch has none. Thread context; with interrupts
// off, and before event_watch_start, it does nothing.
void event_watch_resume(void);
