// The servers that ipctest talks to.
#include "ipctest.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static char memory[IPC_DATA_MAX];

// Computes the answer to the call.
static void answer_to(struct ipc_call *call)
{
    call->retval = 0;
    switch (call->method) {
    case M_ADD:
    case M_RELAY:
        call->retval = (int32_t)(call->arg[1] + call->arg[2]);
        break;
    case IPC_M_DATA_READ: // returns what was written last
    case IPC_M_DATA_WRITE:
        call->arg[0] = (uint32_t)(uintptr_t)memory;
        call->arg[1] = sizeof(memory);
        break;
    default:
        call->retval = -EINVAL;
    }
}

void serve_plainly(int unused)
{
    struct ipc_call call = { 0 };
    int box = ipc_box();

    (void)unused;
    check(box >= 0);
    for (;;) {
        check(ipc_answer_next(box, &call) == 0);
        if (call.id != 0)
            answer_to(&call);
    }
}

void serve_relay(int next)
{
    struct ipc_call call;
    int box = ipc_box();

    check(box >= 0);
    for (;;) {
        check(ipc_wait(box, &call, -1) == 0);
        if (call.id == 0)
            continue;
        if (call.method == M_RELAY && call.arg[0] > 0) {
            call.arg[0]--;
            check(ipc_forward(box, call.id, next, &call) == 0);
        } else {
            answer_to(&call);
            ipc_answer_call(box, &call);
        }
    }
}
