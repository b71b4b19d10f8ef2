#include "trace_begin.h"

#include "user/libstrobe/strobe.h"

#include <errno.h>

int trace_phone(void)
{
    int phone = tracing_phone();

    if (phone < 0)
        fail(1, "%s", kbox_problem(errno));
    return phone;
}

void trace_begin(int phone, const struct calls_options *o)
{
    struct calls_info info;

    if (tracing_begin(phone, o) == 0)
        return;
    int error = errno;
    if (error == EBUSY && tracing_info(phone, &info) == 0 && info.owner)
        fail(1,
             "task %u traces the kernel's calls already, and there is one "
             "trace at a time: cprofile get shows it",
             info.owner);
    if (error == ESRCH)
        fail(1, "-t %u: no such task, or it has ended (see ps)", o->task);
    fail(1, "%s", tracing_problem(error));
}
