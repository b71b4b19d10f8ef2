// A profile session over a kernel box: see strobe.h and <strobe/kbox.h>.
//
// Answers may arrive out of order. The only call that remains pending for long
// is DATA_READ. If its answer arrives during the wait for another answer, it is
// kept in the session until profile_answer is called.
#include "strobe.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

// Converts a kernel result (-errno on failure) to -1 and errno.
static int result(int32_t retval)
{
    if (retval >= 0)
        return retval;
    errno = -retval;
    return -1;
}

static int send(struct profile_session *s, struct ipc_call *call,
                uint32_t command, uintptr_t a, uint32_t b, uint32_t c)
{
    *call = (struct ipc_call){ .method = IPC_M_SPROFILE_ALL,
                               .arg = { command, (uint32_t)a, b, c } };
    return ipc_call(s->phone, call);
}

// Waits for one answer and stores it in *answer. An answer to DATA_READ is also
// recorded in the session.
static int take_answer(struct profile_session *s, int timeout_ms,
                       struct ipc_call *answer)
{
    if (ipc_wait(s->phone, answer, timeout_ms) < 0)
        return -1;
    if (s->reading && answer->id == s->read_id) {
        s->reading = false;
        s->answered = true;
        s->read_result = answer->retval;
    }
    return 0;
}

// Sends a command that does not block, and waits for its answer.
static int request_sized(struct profile_session *s, uint32_t command,
                         uintptr_t a, uint32_t size)
{
    struct ipc_call call, answer;

    if (send(s, &call, command, a, size, 0) < 0)
        return -1;
    for (;;) {
        if (take_answer(s, -1, &answer) < 0) {
            if (errno != EINTR)
                return -1;
        } else if (answer.id == call.id) {
            return result(answer.retval);
        }
    }
}

static int request(struct profile_session *s, uint32_t command, uintptr_t a)
{
    return request_sized(s, command, a, 0);
}

static int hang_up(struct profile_session *s)
{
    int error = errno;

    close(s->phone);
    errno = error;
    return -1;
}

// Connects and sends the command that begins a session. `options` is of the
// command's type.
static int begin(struct profile_session *s, uint32_t task, uint32_t command,
                 const void *options)
{
    *s = (struct profile_session){ .phone = kbox_connect(task) };
    if (s->phone < 0)
        return -1;
    if (request(s, command, (uintptr_t)options) >= 0)
        return 0;
    return hang_up(s);
}

static int begin_sampling(struct profile_session *s, uint32_t task,
                          uint32_t command,
                          const struct sprofile_options *options)
{
    struct sprofile_options o = *options;

    o.size = sizeof(o);
    if (begin(s, task, command, &o) < 0)
        return -1;
    return request(s, SPROFILE_M_MAP, 0) >= 0 ? 0 : hang_up(s);
}

int profile_count_begin(struct profile_session *s, uint32_t task,
                        const struct sprofile_count_options *options)
{
    struct sprofile_count_options o = *options;

    o.size = sizeof(o);
    return begin(s, task, SPROFILE_M_COUNT_BEGIN, &o);
}

int profile_count_read(struct profile_session *s, struct sprofile_counts *out)
{
    return request(s, SPROFILE_M_COUNT_READ, (uintptr_t)out);
}

int profile_begin(struct profile_session *s, uint32_t task,
                  const struct sprofile_options *options)
{
    return begin_sampling(s, task, SPROFILE_M_TASK_BEGIN, options);
}

int profile_begin_system(struct profile_session *s,
                         const struct sprofile_options *options)
{
    return begin_sampling(s, getpid(), SPROFILE_M_SYSTEM_BEGIN, options);
}

int profile_request(struct profile_session *s)
{
    struct ipc_call call;

    if (s->reading || s->answered)
        return 0;
    if (send(s, &call, SPROFILE_M_DATA_READ, (uintptr_t)s->spans,
             sizeof(s->spans), SPROFILE_READ_SPANS) < 0)
        return -1;
    s->reading = true;
    s->read_id = call.id;
    return 0;
}

int profile_answer(struct profile_session *s, int timeout_ms,
                   void (*take)(void *arg, const void *bytes, size_t size),
                   void *arg)
{
    struct ipc_call answer;
    int bytes = 0;

    while (!s->answered) {
        if (take_answer(s, timeout_ms, &answer) < 0)
            return -1;
    }
    s->answered = false;
    int n = result(s->read_result);
    if (n < 0)
        return -1;
    for (size_t i = 0; i < n / sizeof(s->spans[0]); i++) {
        const struct sprofile_span *span = &s->spans[i];
        take(arg, (const void *)(uintptr_t)span->address, span->size);
        bytes += span->size;
    }
    return bytes;
}

int profile_trace_begin(struct profile_session *s,
                        const struct trace_options *options)
{
    struct trace_options o = *options;

    o.size = sizeof(o);
    return begin(s, getpid(), SPROFILE_M_TRACE_BEGIN, &o);
}

int profile_trace_request(struct profile_session *s, void *buffer, size_t size)
{
    struct ipc_call call;

    if (s->reading || s->answered)
        return 0;
    if (send(s, &call, SPROFILE_M_DATA_READ, (uintptr_t)buffer, size, 0) < 0)
        return -1;
    s->reading = true;
    s->read_id = call.id;
    return 0;
}

int profile_trace_answer(struct profile_session *s, int timeout_ms)
{
    struct ipc_call answer;

    while (!s->answered) {
        if (take_answer(s, timeout_ms, &answer) < 0)
            return -1;
    }
    s->answered = false;
    return result(s->read_result);
}

int profile_trace_copy(struct profile_session *s, void *buffer, size_t size)
{
    return request_sized(s, SPROFILE_M_TRACE_COPY, (uintptr_t)buffer, size);
}

int profile_trace_info(struct profile_session *s, struct trace_info *info)
{
    memset(info, 0, sizeof(*info));
    return request(s, SPROFILE_M_INFO, (uintptr_t)info);
}

int profile_info(struct profile_session *s, struct sprofile_info *info)
{
    memset(info, 0, sizeof(*info));
    return request(s, SPROFILE_M_INFO, (uintptr_t)info);
}

int profile_pause(struct profile_session *s, bool pause)
{
    return request(s, SPROFILE_M_PAUSE, pause);
}

void profile_end(struct profile_session *s)
{
    request(s, SPROFILE_M_END, 0);
    close(s->phone);
}
