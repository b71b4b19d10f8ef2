// The kgmon in the background. It ends, and its trace with it, by kgmon -e or a
// signal.
#define _GNU_SOURCE // pipe2, memrchr
#include "kgmon.h"

#include "user/libprofile/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KERNEL_BASE 0xc0000000u
#define DRAIN_MS 2000

static struct {
    int phone, box;
    struct profile_session session;
    struct stream_reader reader;
    struct kgmon_state state;
    uint32_t *bins;
} self;

// --- samples ----------------------------------------------------------------

static void take_sample(void *arg, const struct stream_sample *s)
{
    struct kgmon_state *state = arg;

    if (s->flags & SPROFILE_F_IDLE) {
        state->idle++;
    } else if (!s->kernel_depth) {
        state->user++;
    } else {
        uint32_t bin = (s->kernel[0] - state->low) / KGMON_BIN_BYTES;
        state->kernel++;
        if (s->kernel[0] >= state->low && bin < state->bins)
            self.bins[bin]++;
        else
            state->outside++;
    }
}

static void take_piece(void *arg, const void *bytes, size_t size)
{
    (void)arg;
    stream_read(&self.reader, bytes, size);
}

// Takes all samples that there are. While a session runs, an answer waits for
// many; of a paused one the next answer has all.
static void take_samples(void)
{
    struct profile_session *s = &self.session;

    profile_pause(s, true);
    if (s->answered) // perhaps before the pause
        profile_answer(s, 0, take_piece, NULL);
    if (profile_request(s) == 0) {
        while (profile_answer(s, DRAIN_MS, take_piece, NULL) < 0 &&
               errno == EINTR)
            ;
    }
    profile_pause(s, self.state.paused);
}

// --- beginning --------------------------------------------------------------

// The range from the kernel's first function to the end of its last one.
static void make_bins(void)
{
    size_t size;
    char *text = program_read("[kernel]", &size); // in order of address

    if (!text)
        fail(1, "the kernel's symbols: %s", strerror(errno));
    if (!size)
        fail(1, "the kernel's symbols: it has none");
    char *last = memrchr(text, '\n', size - 1);
    uint32_t low = strtoul(text, NULL, 16) & -KGMON_BIN_BYTES;
    if (!last || low < KERNEL_BASE)
        fail(1, "the kernel's symbols: %s", kbox_problem(EPERM));
    uint32_t high = strtoul(last + 1, NULL, 16) + 4096;
    self.state.low = low;
    self.state.bins = (high - low) / KGMON_BIN_BYTES;
    self.bins = calloc(self.state.bins, sizeof(*self.bins));
    free(text);
    if (!self.bins)
        fail(1, "not enough memory for the histogram");
}

static void begin(const struct kgmon_begin *b)
{
    int ns = ns_phone();

    self.box = ipc_box();
    if (ns < 0 || self.box < 0)
        fail(1, "the naming service: %s", strerror(errno));
    if (ns_register(ns, KGMON_NAME) < 0)
        fail(1, "%s",
             errno == EEXIST ? "runs already: kgmon -s, or -e ends it"
                             : strerror(errno));
    make_bins();
    self.reader =
        (struct stream_reader){ .sample = take_sample, .arg = &self.state };
    if (profile_begin_system(&self.session, &b->samples) < 0)
        fail(1, "the samples: %s", kbox_problem(errno));
    self.phone = tracing_phone();
    if (self.phone < 0 || tracing_begin(self.phone, &b->calls) < 0)
        fail(1, "the calls: %s", tracing_problem(errno));
}

// --- serving ----------------------------------------------------------------

// Only root and who has begun it.
static bool may_command(uint32_t task)
{
    struct stat st;
    char path[32];

    snprintf(path, sizeof(path), "/proc/%u", task);
    return stat(path, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid());
}

static int pause_all(bool pause)
{
    if (tracing_pause(self.phone, pause) < 0 ||
        profile_pause(&self.session, pause) < 0)
        return -errno;
    self.state.paused = pause;
    return 0;
}

static int reset_all(void)
{
    take_samples();
    memset(self.bins, 0, self.state.bins * sizeof(*self.bins));
    self.state.outside = 0;
    self.state.kernel = self.state.idle = self.state.user = 0;
    return tracing_reset(self.phone) < 0 ? -errno : 0;
}

// Answers with what arg[2] asks for.
static void serve_data(struct ipc_call *c)
{
    uint32_t what = c->arg[2], from = c->arg[3];

    c->retval = -EINVAL;
    take_samples();
    if (what == KGMON_STATE) {
        profile_info(&self.session, &self.state.info);
        c->arg[0] = (uint32_t)(uintptr_t)&self.state;
        c->arg[1] = sizeof(self.state);
        c->retval = 0;
    } else if (what == KGMON_BINS && from < self.state.bins) {
        c->arg[0] = (uint32_t)(uintptr_t)&self.bins[from];
        c->arg[1] = (self.state.bins - from) * sizeof(*self.bins);
        c->retval = 0;
    }
}

// Returns false at the end.
static bool serve(struct ipc_call *c)
{
    bool goes_on = true;

    if (!c->id) // a notification
        return true;
    if (!may_command(c->task))
        c->retval = -EPERM;
    else if (c->method == IPC_M_DATA_READ)
        serve_data(c);
    else if (c->method == KGMON_PAUSE)
        c->retval = pause_all(c->arg[0] != 0);
    else if (c->method == KGMON_RESET)
        c->retval = reset_all();
    else if (c->method == KGMON_END) {
        tracing_end(self.phone);
        c->retval = 0;
        goes_on = false;
    } else
        c->retval = -EINVAL;
    ipc_answer_call(self.box, c);
    return goes_on;
}

static void run(void)
{
    struct ipc_call call;

    for (bool goes_on = true; goes_on;) {
        bool ready = profile_request(&self.session) == 0;
        struct pollfd fds[] = { { self.box, POLLIN, 0 },
                                { ready ? self.session.phone : -1, POLLIN,
                                  0 } };
        poll(fds, 2, self.session.answered ? 0 : -1);
        if (fds[1].revents || self.session.answered)
            profile_answer(&self.session, 0, take_piece, NULL);
        if (fds[0].revents && ipc_wait(self.box, &call, 0) == 0)
            goes_on = serve(&call);
    }
}

// The terminal's signals are not for the one in the background.
static void leave_terminal(void)
{
    int null = open("/dev/null", O_RDWR);

    setsid();
    (void)!chdir("/");
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
}

int background_begin(const struct kgmon_begin *b)
{
    int ready[2];
    char byte;

    if (pipe2(ready, O_CLOEXEC) < 0)
        fail(1, "pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        fail(1, "fork: %s", strerror(errno));
    if (child == 0) {
        close(ready[0]);
        begin(b);
        leave_terminal();
        (void)!write(ready[1], "", 1);
        close(ready[1]);
        run();
        _exit(0);
    }
    close(ready[1]);
    int status =
        read(ready[0], &byte, 1) == 1 ? 0 : 1; // else it has complained
    close(ready[0]);
    return status;
}
