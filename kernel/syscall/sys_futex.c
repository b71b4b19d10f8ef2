// The futex calls.

#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_types.h"
#include "kernel/task/futex.h"
#include "kernel/task/task.h"

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_REQUEUE 3
#define FUTEX_CMP_REQUEUE 4
#define FUTEX_WAIT_BITSET 9
#define FUTEX_WAKE_BITSET 10
#define FUTEX_PRIVATE 128u
#define FUTEX_CLOCK_REALTIME 256u

// WAIT_BITSET's timeout is absolute, WAIT's is relative (futex(2)).
static int futex_deadline(u32 op, bool realtime, u32 addr, bool wide,
                          u64 *deadline)
{
    if (op == FUTEX_WAIT || !addr)
        return deadline_from_user(addr, wide, deadline);
    int err = time_from_user(addr, wide, deadline);
    if (!err && realtime)
        *deadline = WAIT_UNTIL_WALL(*deadline);
    return err;
}

// A wait that a signal interrupted is restarted; with a timeout only if no
// handler runs, and then to the same deadline.
static s32 futex_wait_restartable(u32 addr, bool private, u32 value,
                                  u64 deadline, u32 bitset)
{
    struct thread *t = current;
    if (t->restart_deadline)
        deadline = t->restart_deadline;
    t->restart_deadline = 0;
    int err = futex_wait(addr, private, value, deadline, bitset);
    if (err != -EINTR)
        return err;
    if (deadline == WAIT_FOREVER)
        return -ERESTARTSYS;
    t->restart_deadline = deadline;
    return -ERESTARTNOHAND;
}

static s32 do_futex(bool wide, u32 addr, u32 op_flags, u32 value, u32 timeout,
                    u32 addr2, u32 value3)
{
    bool private = op_flags & FUTEX_PRIVATE;
    u32 op = op_flags & ~(FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME);
    u64 deadline;
    if ((op_flags & FUTEX_CLOCK_REALTIME) && op != FUTEX_WAIT_BITSET)
        return -ENOSYS;
    switch (op) {
    case FUTEX_WAIT:
        value3 = FUTEX_ANY;
        // fall through
    case FUTEX_WAIT_BITSET: {
        int err = futex_deadline(op, op_flags & FUTEX_CLOCK_REALTIME, timeout,
                                 wide, &deadline);
        return err ? err
                   : futex_wait_restartable(addr, private, value, deadline,
                                            value3);
    }
    case FUTEX_WAKE:
        value3 = FUTEX_ANY;
        // fall through
    case FUTEX_WAKE_BITSET:
        return futex_wake(addr, private, value, value3);
    case FUTEX_REQUEUE:
        return futex_requeue(addr, addr2, private, value, timeout, NULL);
    case FUTEX_CMP_REQUEUE:
        return futex_requeue(addr, addr2, private, value, timeout, &value3);
    default:
        return -ENOSYS;
    }
}

TIME_TWINS(futex, futex_time64,
           (u32 word, u32 operation, u32 value, u32 timeout, u32 word2,
            u32 value3),
           do_futex(wide, word, operation, value, timeout, word2, value3))
