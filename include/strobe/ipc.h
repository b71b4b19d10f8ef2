// Messages between tasks: answerboxes, phones, calls.
//
// Each task has one answerbox. A client's phone is a descriptor connected to
// it; calls go through the phone into the box, where the task fetches and
// answers them. See docs/ipc.md.
//
//     phone = ipc_connect(task)         close() hangs up
//     ipc_call(phone, &call)            sends; IPC_F_WAIT: waits for the answer
//     ipc_wait(phone, &answer, ms)      the next answer
//
//     box = ipc_box(0)
//     ipc_wait(box, &call, ms)          the next call or notification
//     ipc_answer(box, &answer)          IPC_F_NEXT: then waits for the next one
//     ipc_forward(box, id, phone, NULL) passes it on to another task
//
// Both descriptors work with poll(): POLLIN when ipc_wait would not block,
// POLLHUP when the other side is closed. Both close on exec.
#pragma once

#include <stdint.h>

// ipc_connect(task): a phone to a task's box; to the naming service if `task`
// is 0. -ESRCH, for the naming service -ENOENT: there is none.
#define SYS_ipc_connect 1010
// ipc_call(phone, struct ipc_call *): see the flags. -ECONNRESET: the other
// side is closed; -EAGAIN: too many calls are outstanding; -EINVAL: method or
// flags; -EINTR (IPC_F_WAIT only): the call continues, and ipc_wait returns its
// answer.
#define SYS_ipc_call 1011
// ipc_wait(phone or box, struct ipc_call *, milliseconds or -1). -ETIMEDOUT,
// -EINTR; for a phone -ENOENT: no call is outstanding, so no answer can arrive;
// for a box -ECONNRESET: it is closed, -EPERM: it belongs to another task.
#define SYS_ipc_wait 1012
// ipc_answer(box, struct ipc_call *): id selects the call; retval and arg are
// sent to the caller. Returns bytes copied, a descriptor (IPC_M_CONNECT_TO_ME)
// or 0. -ENOENT: no such call; -EFAULT, -ECONNRESET: a copy failed (the call is
// answered, with the same error); -EBADF: not a phone (IPC_M_CONNECT_ME_TO; not
// answered).
#define SYS_ipc_answer 1013
// ipc_forward(box, id, phone, struct ipc_call * or NULL): passes a received
// call on; with a structure, under a new method and with new arguments. The
// receiver's answer is sent to the original caller. After an error the call
// stays here.
#define SYS_ipc_forward 1014
// ipc_hangup(phone): for all tasks that share the phone; outstanding calls are
// answered with -ECONNRESET.
#define SYS_ipc_hangup 1015
// ipc_box(flags): a descriptor of the caller's own answerbox. Closing the last
// one hangs up all phones.
#define SYS_ipc_box 1016
#define IPC_BOX_NAMING 1 // become the naming service; -EBUSY: there is one
// ipc_irq(box, irq, on): interrupts arrive as calls IPC_M_IRQ. `irq` below 16
// is an ISA line, from 32 on a vector. -ENXIO: no device uses it.
#define SYS_ipc_irq 1017

struct ipc_call {
    uint32_t id;     // set by ipc_call and ipc_wait; given to ipc_answer
    uint32_t method; // IPC_M_...
    uint32_t arg[6];
    int32_t retval; // in the answer: >= 0 or -errno
    uint32_t flags; // IPC_F_...; 0 in the result of ipc_wait
    uint32_t task;  // in a received call: the sender's task
    uint32_t phone; // and a number that is constant for its phone
};

#define IPC_F_WAIT 1  // ipc_call: returns with this call's answer in the struct
#define IPC_F_BLOCK 2 // ipc_call: waits for room instead of -EAGAIN
#define IPC_F_NEXT 4  // ipc_answer: returns with the next call in the struct

#define IPC_NAME_MAX 16 // bytes of a service's name, in arg[2] to arg[5]

// Methods below IPC_M_USER are interpreted by the kernel.
#define IPC_M_SPROFILE_ALL 1 // kernel boxes: <strobe/kbox.h>
// arg[0], arg[1]: memory of the caller, address and size. An answer with retval
// >= 0 gives the answering task's own memory in arg[0], arg[1]. The kernel
// copies the smaller of the two sizes (at most IPC_DATA_MAX), and both sides
// get the number of bytes.
#define IPC_M_DATA_READ 2  // from the answering task to the caller
#define IPC_M_DATA_WRITE 3 // from the caller to the answering task
// The caller requests a phone. If it is answered with retval >= 0 and a phone
// of the server's in arg[0], the caller gets a phone to the same box: retval is
// the descriptor.
#define IPC_M_CONNECT_ME_TO 4
// The caller offers a phone to itself. If the answer is >= 0, the answering
// task gets it: ipc_answer's result.
#define IPC_M_CONNECT_TO_ME 5
// From the kernel, not to be answered (id 0). A phone that has sent calls was
// hung up: the one in `phone` and `task`.
#define IPC_M_PHONE_HANGUP 6
// Likewise. arg: the requested irq, its vector, the number of interrupts since
// the previous notification, the CPU of the last one.
#define IPC_M_IRQ 7
#define IPC_M_USER 1024

#define IPC_DATA_MAX (1u << 20) // bytes in one copy
#define IPC_PHONE_CALLS 32u     // a phone's calls with unfetched answers
#define IPC_BOX_CALLS 256u      // unanswered calls in a box

// The naming service: IPC_M_CONNECT_TO_ME registers the caller under a name
// (-EEXIST), IPC_M_CONNECT_ME_TO looks it up (-ENOENT).
#define IPC_NS_WAIT 1 // in arg[0]: answer once the name is registered
