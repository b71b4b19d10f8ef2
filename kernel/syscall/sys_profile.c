// System calls of the address-bin profiler: see <strobe/profile.h>.

#include <arch/mmu.h>

#include "kernel/base/errno.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/sample.h"
#include "kernel/syscall/syscall.h"

SYSCALL_HANDLER(profile)
{
    return bins_profile(a, b, c);
}

SYSCALL_HANDLER(getprof)
{
    struct prof_data *data = kmalloc(sizeof(*data));
    if (!data)
        return -ENOMEM;
    int err = bins_result(data);
    if (!err)
        err = copy_to_user(a, data, sizeof(*data));
    kfree(data);
    return err;
}
