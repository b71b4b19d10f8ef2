// The kernel's IPC system calls as C functions.
#include "ipc.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int ipc_connect(uint32_t task)
{
    return syscall(SYS_ipc_connect, task);
}

int ipc_hangup(int phone)
{
    return syscall(SYS_ipc_hangup, phone);
}

// Waits for the answer to call `id`, an IPC_F_WAIT call that a signal has
// interrupted. Other answers are discarded, but there are none as a rule: the
// answer to an IPC_F_WAIT call that was not interrupted goes to its thread.
static int wait_for(int phone, struct ipc_call *call, uint32_t id)
{
    do {
        if (ipc_wait(phone, call, -1) < 0 && errno != EINTR)
            return -1;
    } while (call->id != id);
    return 0;
}

int ipc_request(int phone, struct ipc_call *call)
{
    call->flags |= IPC_F_WAIT;
    if (ipc_call(phone, call) < 0) {
        uint32_t id = call->id;
        if (errno != EINTR)
            return -1;
        call->id = 0;
        if (wait_for(phone, call, id) < 0)
            return -1;
    }
    if (call->retval >= 0)
        return call->retval;
    errno = -call->retval;
    return -1;
}

static int transfer(int phone, uint32_t method, const void *buf, size_t size,
                    const uint32_t words[4])
{
    struct ipc_call call = { .method = method,
                             .arg = { (uint32_t)(uintptr_t)buf, size } };

    if (words)
        memcpy(call.arg + 2, words, 4 * sizeof(*words));
    return ipc_request(phone, &call);
}

int ipc_read(int phone, void *buf, size_t size, const uint32_t words[4])
{
    return transfer(phone, IPC_M_DATA_READ, buf, size, words);
}

int ipc_write(int phone, const void *buf, size_t size, const uint32_t words[4])
{
    return transfer(phone, IPC_M_DATA_WRITE, buf, size, words);
}

int ipc_box(void)
{
    return syscall(SYS_ipc_box, 0);
}

int ipc_answer_call(int box, struct ipc_call *answer)
{
    answer->flags = 0;
    return syscall(SYS_ipc_answer, box, answer);
}

int ipc_answer(int box, uint32_t id, int32_t retval)
{
    struct ipc_call answer = { .id = id, .retval = retval };

    return ipc_answer_call(box, &answer);
}

int ipc_answer_next(int box, struct ipc_call *answer)
{
    answer->flags = IPC_F_NEXT;
    if (answer->id != 0 && syscall(SYS_ipc_answer, box, answer) >= 0)
        return 0;
    while (ipc_wait(box, answer, -1) < 0) {
        if (errno != EINTR)
            return -1;
    }
    return 0;
}

int ipc_forward(int box, uint32_t id, int phone, struct ipc_call *changed)
{
    return syscall(SYS_ipc_forward, box, id, phone, changed);
}

int ipc_irq(int box, uint32_t irq, bool on)
{
    return syscall(SYS_ipc_irq, box, irq, on);
}
