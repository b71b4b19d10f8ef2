// System calls of the address-bin profiler: see <strobe/profile.h>.

#include "arch/mmu.h"
#include "kernel/base/errno.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/sample.h"
#include "kernel/syscall/syscall.h"

s32 sys_profile(u32 task, u32 low, u32 high)
{
    return bins_profile(task, low, high);
}

s32 sys_getprof(u32 buffer)
{
    struct prof_data *data = kmalloc(sizeof(*data));
    if (!data)
        return -ENOMEM;
    int err = bins_result(data);
    if (!err)
        err = copy_to_user(buffer, data, sizeof(*data));
    kfree(data);
    return err;
}
