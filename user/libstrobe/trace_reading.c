#include "trace_reading.h"

#include <errno.h>
#include <string.h>

static void pause_trace(struct trace_reading *r)
{
    r->paused = true;
    profile_pause(r->session, true);
}

static int answer(struct trace_reading *r)
{
    for (;;) {
        if (r->interrupted)
            r->interrupted(r->arg);
        if (*r->over && !r->paused)
            pause_trace(r);
        int n = profile_trace_answer(r->session, -1);
        if (n >= 0 || errno != EINTR)
            return n;
    }
}

int trace_reading_next(struct trace_reading *r)
{
    bool rest = r->paused; // of what is asked for now

    if (profile_trace_request(r->session, r->buffer, r->bytes) < 0)
        return -1;
    int n = answer(r);
    if (n >= 0)
        return n || !rest ? n : -1;
    if (errno == ESHUTDOWN && r->resumes && !r->paused) {
        pause_trace(r);
        return 0;
    }
    if (errno != ESHUTDOWN)
        complain("reading the trace: %s", strerror(errno));
    return -1;
}
