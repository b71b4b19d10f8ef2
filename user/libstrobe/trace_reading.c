#include "trace_reading.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

static volatile sig_atomic_t over, at_once;

static void on_signal(int signal)
{
    if (over && signal != SIGCHLD)
        at_once = 1;
    over = 1;
}

// A signal that comes before a wait shortens the wait, not only one that comes
// during it: reads return after half a second in any case.
void trace_reading_end_at(int signal)
{
    struct sigaction action = { .sa_handler = on_signal,
                                .sa_flags = SA_NOCLDSTOP };

    sigaction(signal, &action, NULL);
}

bool trace_reading_cut_off(void)
{
    return at_once;
}

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
        if (over && !r->paused)
            pause_trace(r);
        int n = profile_trace_answer(r->session, -1);
        if (n >= 0 || errno != EINTR || at_once)
            return n;
    }
}

int trace_reading_next(struct trace_reading *r)
{
    bool rest = r->paused; // of what is asked for now

    if (at_once) {
        complain("interrupted: the rest of the trace was not read");
        return -1;
    }
    if (profile_trace_request(r->session, r->buffer, r->bytes) < 0)
        return -1;
    int n = answer(r);
    if (n >= 0)
        return n || !rest ? n : -1;
    if (errno == ESHUTDOWN && r->resumes && !r->paused) {
        pause_trace(r);
        return 0;
    }
    if (errno == EINTR)
        return 0;
    if (errno != ESHUTDOWN)
        complain("reading the trace: %s", strerror(errno));
    return -1;
}
