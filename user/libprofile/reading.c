#include "reading.h"

#include <errno.h>
#include <poll.h>

#define DRAIN_MS 2000 // wait for the last records of a stopped session

// The origin of a piece of the stream.
struct piece {
    struct reading *reading;
    uint32_t event;
};

static void take_piece(void *arg, const void *bytes, size_t size)
{
    const struct piece *p = arg;
    struct reading *r = p->reading;

    samples_add_stream(&r->events->list[p->event].samples, bytes, size);
    recording_flush(&r->recording);
}

static void reading_failed(struct event *e)
{
    e->over = true;
    if (errno != ESHUTDOWN)
        complain("reading samples: %s", kbox_problem(errno));
}

// Takes one answer. Returns its size in bytes, or -1 on a time-out, a signal or
// an error.
static int take_answer(struct reading *r, uint32_t event, int timeout_ms)
{
    struct event *e = &r->events->list[event];
    struct piece piece = { r, event };
    int n = profile_answer(&e->session, timeout_ms, take_piece, &piece);

    if (n < 0 && errno != EINTR && errno != ETIMEDOUT && errno != EAGAIN)
        reading_failed(e);
    return n;
}

// Requests the next records. Returns true if an answer has arrived already.
static bool ask(struct event *e)
{
    if (!e->over && profile_request(&e->session) < 0)
        reading_failed(e);
    return e->session.answered;
}

bool reading_take(struct reading *r, int timeout_ms, int other)
{
    struct events *all = r->events;
    struct pollfd fds[EVENTS_MAX + 1];
    bool any = false;

    for (uint32_t i = 0; i < all->count; i++) {
        struct event *e = &all->list[i];
        if (ask(e))
            timeout_ms = 0;
        fds[i] = (struct pollfd){ e->over ? -1 : e->session.phone, POLLIN, 0 };
        any |= !e->over;
    }
    fds[all->count] = (struct pollfd){ other, POLLIN, 0 };
    if (!any)
        return false;
    if (poll(fds, all->count + 1, timeout_ms) < 0)
        return true;
    for (uint32_t i = 0; i < all->count; i++) {
        struct event *e = &all->list[i];
        if (!e->over && (fds[i].revents != 0 || e->session.answered))
            take_answer(r, i, 0);
    }
    return true;
}

bool reading_pause(struct reading *r, bool pause)
{
    bool all = true;

    for (uint32_t i = 0; i < r->events->count; i++)
        all &= profile_pause(&r->events->list[i].session, pause) == 0;
    return all;
}

// Takes one answer to a request made after the pause, which holds all samples.
// Reading until the stream is empty might never end, because tasks are still
// created and reported during the pause. A signal (the child's end, a second
// ^C) only restarts the wait.
static void drain(struct reading *r, uint32_t event)
{
    struct event *e = &r->events->list[event];
    int n;

    if (e->session.answered)
        take_answer(r, event, 0); // may have been made before the pause
    ask(e);
    do
        n = e->over ? 0 : take_answer(r, event, DRAIN_MS);
    while (n < 0 && !e->over && errno == EINTR);
}

void reading_drain(struct reading *r)
{
    reading_pause(r, true);
    for (uint32_t i = 0; i < r->events->count; i++)
        drain(r, i);
}

void reading_info(struct reading *r)
{
    for (uint32_t i = 0; i < r->events->count; i++) {
        struct event *e = &r->events->list[i];
        if (profile_info(&e->session, &e->info) < 0)
            complain("the session's totals: %s", kbox_problem(errno));
    }
}

bool reading_end(struct reading *r)
{
    reading_info(r);
    bool ok = recording_end(&r->recording);
    for (uint32_t i = 0; i < r->events->count; i++)
        profile_end(&r->events->list[i].session);
    return ok;
}
