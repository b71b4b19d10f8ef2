// Dispatch: the table that syscalls.def generates.

#include "kernel/syscall/syscall.h"

#include "kernel/sched/task.h"

#define SYSCALL(number, name, args) SYSCALL_HANDLER(name);
#include "kernel/syscall/syscalls.def"
#undef SYSCALL

#define LINUX_CALLS 512
#define STROBE_CALLS 128

#define SYSCALL(number, name, args)                        \
    [(number) < SYSCALL_STROBE_FIRST                       \
         ? (number)                                        \
         : (number)-SYSCALL_STROBE_FIRST + LINUX_CALLS] = { \
        sys_##name, #name, args                            \
    },
static const struct syscall_entry table[LINUX_CALLS + STROBE_CALLS] = {
#include "kernel/syscall/syscalls.def"
};
#undef SYSCALL

const struct syscall_entry *syscall_entry(u32 number)
{
    if (number >= LINUX_CALLS)
        number = number - SYSCALL_STROBE_FIRST + LINUX_CALLS;
    if (number >= ARRAY_SIZE(table) || !table[number].fn)
        return NULL;
    return &table[number];
}

struct trapframe *syscall_frame(void)
{
    return thread_trapframe(current);
}

// The program sees neither: the way to user mode finds out which it is.
static NOINLINE s32 interrupted(struct trapframe *tf, u32 number, s32 error)
{
    (void)tf;
    current->restart_call = number;
    current->restart_error = (u32)-error;
    current->signal_pending = true;
    return -EINTR;
}

void syscall_dispatch(struct trapframe *tf)
{
    u32 number = tf->eax;
    u32 index = number < LINUX_CALLS
                    ? number
                    : number - SYSCALL_STROBE_FIRST + LINUX_CALLS;
    if (unlikely(index >= ARRAY_SIZE(table) || !table[index].fn ||
                 (number >= LINUX_CALLS && number < SYSCALL_STROBE_FIRST))) {
        tf->eax = (u32)-ENOSYS;
        return;
    }
    s32 result = table[index].fn(tf->ebx, tf->ecx, tf->edx, tf->esi, tf->edi,
                                 tf->ebp);
    if (unlikely(result == -ERESTARTSYS || result == -ERESTARTNOHAND))
        result = interrupted(tf, number, result);
    tf->eax = (u32)result;
}
