// Strobe's own system calls, as C functions.
#include "strobe.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int kbox_connect(uint32_t task)
{
    return syscall(SYS_kbox_connect, task);
}

int ipc_call(int phone, struct ipc_call *call)
{
    return syscall(SYS_ipc_call, phone, call);
}

int ipc_wait(int phone, struct ipc_call *answer, int timeout_ms)
{
    return syscall(SYS_ipc_wait, phone, answer, timeout_ms);
}

const char *kbox_problem(int error)
{
    switch (error) {
    case ESRCH:
        return "no such task, or it has ended (see ps)";
    case EPERM:
        return PROFILE_PERMISSION;
    case ENODEV:
    case ENOENT:
        return "no such sample source; without -s the kernel takes "
               "the best one";
    case EINVAL:
        return "the kernel refuses this rate or source; without -F and -s it "
               "chooses them";
    case EBUSY:
        return "the sample source is in use by another session";
    case EUSERS:
        return "there are as many sessions as there can be, or as this user "
               "may "
               "have (sysinfo system.profile.sessions)";
    case ENFILE:
        return "this user has as many connections, pipes and file locks as it "
               "may have (sysinfo system.users)";
    case ENOMEM:
        return "not enough memory for the sample buffers";
    case ENOSYS:
        return "this kernel has no kernel boxes: it is not Strobe";
    default:
        return strerror(error);
    }
}
