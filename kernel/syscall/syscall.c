// Dispatch: the handlers in syscalls.def.

#include "kernel/base/user_return.h"
#include "kernel/debug/uninit.h"
#include "kernel/syscall/dispatch.h"

#include "kernel/syscall/at_path.h"
#include "kernel/task/task.h"
#include "kernel/trace/point.h"

// Aliases of another call.
#define SYSCALL(number, name, ...)
#define SYSCALL_AS(number, name, call, ...) \
    s32 sys_##name(__VA_ARGS__)             \
    {                                       \
        return sys_##call;                  \
    }
#define SYSCALL_ARG(kind, type, name) type name
#define SYSCALL_NO_ARGS void
#include <strobe/syscalls.def>

static s32 unknown(void)
{
    return -ENOSYS;
}

#define HANDLER(fn) ((trap_call_fn)(void (*)(void))(fn))
#define SYSCALL(number, name, ...) [CALL_##name] = HANDLER(sys_##name),
const trap_call_fn syscall_handlers[CALL_COUNT] = {
    [CALL_unknown] = HANDLER(unknown),
#include <strobe/syscalls.def>
};

struct trapframe *syscall_frame(void)
{
    return thread_trapframe(current);
}

static bool is_restart(s32 error)
{
    return (u32)(error + ERESTARTNOHAND) <= ERESTARTNOHAND - ERESTARTSYS;
}

s32 syscall_failed(u32 number, s32 error)
{
    u32 call = syscall_call(number);
    if (call == CALL_sigreturn || call == CALL_rt_sigreturn)
        return error; // the program's own eax, not an error
    if (!is_restart(error)) {
        current->call_failed = true;
        return error;
    }
    // The return to user mode decides between a restart and EINTR; the program
    // sees either of these only.
    current->restart_call = number;
    current->restart_error = (u32)-error;
    WRITE_ONCE(current->signal_pending, true);
    return -EINTR;
}

_Static_assert(CALL_unknown == 0, "entry.S");

NOTRACE void trap_syscall(struct trapframe *tf, u32 call)
{
    uninit_fill_stack();
    irq_enable();
    TRACE(syscall_enter, .call = trap_call(tf));
    syscall_run(tf, call);
    TRACE(syscall_exit, .call = trap_call(tf), .result = trap_result(tf));
    user_return_prepare(tf);
    syscall_leave(current, call);
}
