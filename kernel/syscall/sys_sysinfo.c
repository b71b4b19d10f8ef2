// System calls of the sysinfo tree: see <strobe/sysinfo.h>.

#include <strobe/sysinfo.h>

#include "arch/mmu.h"
#include "kernel/monitor/sysinfo.h"
#include "kernel/syscall/syscall.h"

// Copies a call's path: its length, or -EFAULT, -ENOENT (longer than any
// node's).
static int path_from_user(char *path, u32 from, u32 len)
{
    int err;
    if (len > SYSINFO_PATH_MAX)
        return -ENOENT;
    err = copy_from_user(path, from, len);
    return err ? err : (int)len;
}

typedef int (*reader)(const char *path, size_t len, struct chain *out);

static s32 read_node(reader read, u32 path_addr, u32 path_len, u32 to, u32 size)
{
    char path[SYSINFO_PATH_MAX];
    int len = path_from_user(path, path_addr, path_len);
    struct chain out;
    s32 result;
    if (len < 0)
        return len;
    result = read(path, (size_t)len, &out);
    if (!result)
        result = chain_to_user(&out, to, size);
    if (!result)
        result = (s32)chain_bytes(&out);
    chain_free(&out);
    return result;
}

s32 sys_sysinfo_get_data(u32 name, u32 name_size, u32 buffer, u32 size)
{
    return read_node(size ? sysinfo_data : sysinfo_size, name, name_size,
                     buffer, size);
}

s32 sys_sysinfo_get_keys(u32 name, u32 name_size, u32 buffer, u32 size)
{
    return read_node(sysinfo_keys, name, name_size, buffer, size);
}

s32 sys_sysinfo_get_type(u32 name, u32 name_size)
{
    char path[SYSINFO_PATH_MAX];
    int len = path_from_user(path, name, name_size);
    return len < 0 ? len : sysinfo_type(path, (size_t)len);
}
