#include "tracing.h"

#include "strobe.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_TRIES 8
#define SPARE_RECORDS 64u // new ones between INFO and READ

int tracing_phone(void)
{
    return kbox_connect((uint32_t)getpid());
}

// Sends a command and waits for its answer, even if signals arrive.
static int request(int phone, uint32_t command, uintptr_t a, uint32_t b,
                   uint32_t c)
{
    struct ipc_call call = { .method = IPC_M_SPROFILE_ALL,
                             .arg = { command, (uint32_t)a, b, c } };
    struct ipc_call answer = { 0 };

    if (ipc_call(phone, &call) < 0)
        return -1;
    do {
        if (ipc_wait(phone, &answer, -1) < 0 && errno != EINTR)
            return -1;
    } while (answer.id != call.id);
    if (answer.retval >= 0)
        return answer.retval;
    errno = -answer.retval;
    return -1;
}

int tracing_begin(int phone, const struct calls_options *options)
{
    struct calls_options o = *options;

    o.size = sizeof(o);
    return request(phone, SPROFILE_M_CALLS_BEGIN, (uintptr_t)&o, 0, 0);
}

int tracing_pause(int phone, bool pause)
{
    return request(phone, SPROFILE_M_PAUSE, pause, 0, 0);
}

int tracing_end(int phone)
{
    return request(phone, SPROFILE_M_END, 0, 0, 0);
}

int tracing_info(int phone, struct calls_info *out)
{
    return request(phone, SPROFILE_M_CALLS_INFO, (uintptr_t)out, 0, 0);
}

int tracing_reset(int phone)
{
    return request(phone, SPROFILE_M_CALLS_RESET, 0, 0, 0);
}

int tracing_names(int phone, struct calls_name *list, uint32_t count)
{
    return request(phone, SPROFILE_M_CALLS_NAMES, (uintptr_t)list, count, 0);
}

static size_t room_for(const struct calls_info *info)
{
    size_t record = info->mode == CALLS_PATHS ? sizeof(struct calls_node)
                                              : sizeof(struct calls_arc);

    return sizeof(*info) +
           (info->records + info->records / 4 + SPARE_RECORDS) * record;
}

struct calls_info *tracing_read(int phone, bool reset)
{
    struct calls_info now, *all = NULL;

    if (tracing_info(phone, &now) < 0)
        return NULL;
    errno = ESHUTDOWN;
    for (int i = 0; i < READ_TRIES && now.state != CALLS_NONE; i++) {
        size_t size = room_for(&now);
        free(all);
        all = malloc(size);
        if (!all)
            return NULL;
        if (request(phone, SPROFILE_M_CALLS_READ, (uintptr_t)all,
                    (uint32_t)size, reset) >= 0)
            return all;
        if (errno != ENOSPC)
            break;
        now = *all;
    }
    int error = errno;
    free(all);
    errno = error;
    return NULL;
}

const char *tracing_problem(int error)
{
    switch (error) {
    case EBUSY:
        return "the kernel's calls are traced already, and there is one trace "
               "at a time: cprofile get shows it";
    case ESHUTDOWN:
        return "there is no trace: cprofile COMMAND makes one";
    case EINVAL:
        return "the kernel refuses these options";
    case ENOMEM:
        return "not enough memory for the tables: fewer functions, or "
               "--entries N";
    case ENOSPC:
        return "the trace grows faster than it is read: fewer functions";
    default:
        return kbox_problem(error);
    }
}
