// What calls carry besides words: the caller's memory, and connections.
//
// The answering task does the work, in its own context, so that the time is
// charged to it. The call, not the caller, has the reference to the caller's
// memory, so that the caller may exit during the copy. When the phone is hung
// up, the reference is dropped at once, or when a running copy is done.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/file.h"
#include "kernel/ipc/ipc.h"
#include "kernel/mm/aspace.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"

#define ON_STACK 128u // up to this many bytes, copied via the stack

int transfer_prepare(struct call *c)
{
    assert_checked(!c->aspace && !c->connect);
    struct task *t = current_task();
    u32 method = c->method;
    if (likely(method >= IPC_M_USER) || c->phone->box->server)
        return 0;
    switch (method) {
    case IPC_M_DATA_READ:
    case IPC_M_DATA_WRITE:
        if (!t->aspace)
            return -EINVAL;
        aspace_ref(c->aspace = t->aspace);
        return 0;
    case IPC_M_CONNECT_ME_TO:
        return 0;
    case IPC_M_CONNECT_TO_ME:
        c->connect = task_box(t, TASK_BOX);
        return c->connect ? 0 : -ENOMEM;
    default:
        return -EINVAL;
    }
}

// --- memory -----------------------------------------------------------------

struct copy {
    struct aspace *caller;
    u32 caller_addr, own_addr; // addresses: the caller's, the current task's
    bool to_caller;
};

static int copy_part(const struct copy *c, u32 at, void *buf, u32 n)
{
    assert_checked(n && n <= PAGE_SIZE);
    int moved;
    if (c->to_caller) {
        if (copy_from_user(buf, c->own_addr + at, n))
            return -EFAULT;
        moved = aspace_write(c->caller, c->caller_addr + at, buf, n);
        return moved == (int)n ? 0 : -EFAULT;
    }
    moved = aspace_read(c->caller, c->caller_addr + at, buf, n);
    return moved == (int)n ? copy_to_user(c->own_addr + at, buf, n) : -EFAULT;
}

// Copies all of it: 0, or -EFAULT, -ENOMEM.
static int copy_memory(const struct copy *c, u32 size)
{
    u8 small[ON_STACK];
    if (size > USER_END || c->caller_addr > USER_END - size ||
        c->own_addr > USER_END - size)
        return -EFAULT;
    u32 part = size <= ON_STACK ? ON_STACK : PAGE_SIZE;
    void *buf = part == ON_STACK ? small : kmalloc(part);
    int err = buf ? 0 : -ENOMEM;
    for (u32 at = 0; !err && at < size; at += part)
        err = copy_part(c, at, buf, MIN(part, size - at));
    if (buf != small)
        kfree(buf);
    return err;
}

static int copy_data(struct call *c, struct ipc_call *answer)
{
    struct copy copy = {
        .caller = call_take_aspace(c),
        .caller_addr = c->arg[0],
        .own_addr = answer->arg[0],
        .to_caller = c->method == IPC_M_DATA_READ,
    };
    if (!copy.caller)
        return -ECONNRESET; // the caller no longer waits
    u32 size = MIN(MIN(c->arg[1], answer->arg[1]), IPC_DATA_MAX);
    int err = copy_memory(&copy, size);
    aspace_unref(copy.caller);
    return err ? err : (int)size;
}

// --- connections ------------------------------------------------------------

// Connects the caller to the box of the answering task's phone.
static int give_connection(struct call *c, struct ipc_call *answer)
{
    assert(!c->connect && c->method == IPC_M_CONNECT_ME_TO);
    struct file *file;
    struct phone *p;
    if (phone_from_fd(answer->arg[0], &file, &p))
        return -EBADF;
    int err = phone_dead(p) ? -ECONNRESET : p->box->server ? -EBADF : 0;
    if (!err) {
        box_ref(p->box);
        c->connect = p->box;
    }
    file_unref(file);
    return err;
}

void transfer_fetched(struct call *c, struct ipc_call *answer)
{
    assert_checked(c->connect);
    if (c->method == IPC_M_CONNECT_ME_TO)
        answer->retval = phone_install(c->connect);
}

int transfer_answer(struct call *c, struct ipc_call *answer)
{
    assert_checked(c->method < IPC_M_USER);
    int result;
    if (answer->retval < 0)
        return 0; // refused
    switch (c->method) {
    case IPC_M_DATA_READ:
    case IPC_M_DATA_WRITE:
        result = copy_data(c, answer);
        answer->retval = result;
        answer->arg[0] = c->arg[0];
        answer->arg[1] = c->arg[1];
        return result;
    case IPC_M_CONNECT_ME_TO:
        result = give_connection(c, answer);
        if (result)
            answer->retval = result;
        return result;
    default: // IPC_M_CONNECT_TO_ME
        assert_checked(c->connect);
        result = phone_install(c->connect);
        answer->retval = MIN(result, 0);
        return result;
    }
}
