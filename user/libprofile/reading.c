#include "reading.h"

#include <errno.h>

#define DRAIN_MS 2000 // for the last records of a session that was stopped

static void take_piece(void *arg, const void *bytes, size_t size)
{
    const struct reading *r = arg;

    samples_add_stream(r->samples, bytes, size);
    recording_take(r->recording, bytes, size);
}

bool reading_take(const struct reading *r, int timeout_ms, int *size)
{
    int n = profile_request(r->session);

    if (n == 0)
        n = profile_answer(r->session, timeout_ms, take_piece, (void *)r);
    *size = n > 0 ? n : 0;
    if (n >= 0 || errno == EINTR || errno == ETIMEDOUT || errno == EAGAIN)
        return true;
    if (errno != ESHUTDOWN)
        complain("reading samples: %s", kbox_problem(errno));
    return false;
}

void reading_drain(const struct reading *r)
{
    int size;

    if (profile_pause(r->session, true) < 0)
        return;
    do {
        if (!reading_take(r, DRAIN_MS, &size))
            return;
    } while (size > 0);
}

bool reading_end(const struct reading *r, struct sprofile_info *info)
{
    if (profile_info(r->session, info) < 0)
        complain("the session's totals: %s", kbox_problem(errno));
    bool ok = recording_end(r->recording, info);
    profile_end(r->session);
    return ok;
}
