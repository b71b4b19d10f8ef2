// User copies: ranges are checked here, faults are handled by the exception
// table.
//
// No locks. Other threads of the task may change the memory concurrently:
// callers copy once and use only the copy.

#include "arch/mmu.h"
#include "arch/thread.h"
#include "kernel/base/errno.h"
#include "kernel/debug/access.h"
#include "kernel/debug/uninit.h"

// usercopy.S
int user_copy(void *dst, const void *src, size_t n);
int user_zero(void *dst, size_t n);
int user_string(char *dst, const char *src, size_t n);
int user_load(const u32 *src, u32 *value);
int user_store(u32 *dst, u32 value);
int user_fxsave(void *dst);
int user_fxrstor(const void *src);

struct fixup {
    u32 at, fixup;
};
extern const struct fixup ex_table_start[], ex_table_end[];

static ALWAYS_INLINE bool range_ok(u32 addr, size_t n)
{
    return n <= USER_END && addr <= USER_END - n;
}

NOTRACE int copy_from_user(void *dst, u32 src, size_t n)
{
    if (unlikely(!range_ok(src, n)))
        return -EFAULT;
    check_write(dst, n);
    return user_copy(dst, (const void *)src, n);
}

NOTRACE int copy_to_user(u32 dst, const void *src, size_t n)
{
    if (unlikely(!range_ok(dst, n)))
        return -EFAULT;
    check_read(src, n);
    uninit_check(src, n);
    return user_copy((void *)dst, src, n);
}

int zero_user(u32 dst, size_t n)
{
    if (unlikely(!range_ok(dst, n)))
        return -EFAULT;
    return user_zero((void *)dst, n);
}

int copy_string_from_user(char *dst, u32 src, size_t size)
{
    if (unlikely(src >= USER_END))
        return -EFAULT;
    size_t room = USER_END - src;
    size_t n = MIN(size, room);
    check_write(dst, n);
    int length = user_string(dst, (const char *)src, n);
    if (length < 0 || (size_t)length < n)
        return length;
    return size <= room ? -ENAMETOOLONG : -EFAULT;
}

int user_load_u32(u32 addr, u32 *value)
{
    if (unlikely(!range_ok(addr, sizeof(u32))))
        return -EFAULT;
    return user_load((const u32 *)addr, value);
}

int user_store_u32(u32 addr, u32 value)
{
    if (unlikely(!range_ok(addr, sizeof(u32))))
        return -EFAULT;
    uninit_check(&value, sizeof(value));
    return user_store((u32 *)addr, value);
}

int fxsave_to_user(u32 dst)
{
    if (unlikely(!range_ok(dst, FPU_AREA_SIZE)))
        return -EFAULT;
    return user_fxsave((void *)dst);
}

int fxrstor_from_user(u32 src)
{
    if (unlikely(!range_ok(src, FPU_AREA_SIZE)))
        return -EFAULT;
    return user_fxrstor((const void *)src);
}

// The table has a few dozen entries and is searched only after a fault.
bool fault_fixup(u32 *eip)
{
    for (const struct fixup *f = ex_table_start; f < ex_table_end; f++) {
        if (f->at == *eip) {
            *eip = f->fixup;
            return true;
        }
    }
    return false;
}
