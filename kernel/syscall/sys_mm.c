// System calls on memory: brk, mmap and related calls, as in Linux/i386.

#include "kernel/base/log.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/aspace.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/task.h"

#define MAP_SHARED 0x01u
#define MAP_PRIVATE 0x02u
#define MAP_SHARED_VALIDATE 0x03u
#define MAP_TYPE 0x0fu
#define MAP_FIXED 0x10u
#define MAP_ANONYMOUS 0x20u
#define MAP_GROWSDOWN 0x100u
#define MAP_DENYWRITE 0x800u
#define MAP_EXECUTABLE 0x1000u
#define MAP_LOCKED 0x2000u
#define MAP_NORESERVE 0x4000u
#define MAP_POPULATE 0x8000u
#define MAP_NONBLOCK 0x10000u
#define MAP_STACK 0x20000u
#define MAP_HUGETLB 0x40000u
#define MAP_FIXED_NOREPLACE 0x100000u

// Flags that Linux ignores, or that already hold: pages stay in memory.
#define MAP_HINTS \
    (MAP_DENYWRITE | MAP_EXECUTABLE | MAP_NORESERVE | MAP_NONBLOCK | MAP_STACK)
#define MAP_VALIDATED                                                   \
    (MAP_TYPE | MAP_FIXED | MAP_ANONYMOUS | MAP_LOCKED | MAP_POPULATE | \
     MAP_HINTS)

#define USER_PROT_READ 1u
#define USER_PROT_WRITE 2u
#define USER_PROT_EXEC 4u
#define USER_PROT_MASK 7u

#define MREMAP_MAYMOVE 1u
#define MREMAP_FIXED 2u

#define MS_ASYNC 1u
#define MS_INVALIDATE 2u
#define MS_SYNC 4u

#define MADV_WILLNEED 3u
#define MADV_DONTNEED 4u
#define MADV_FREE 8u
#define MADV_DONTDUMP 16u // nothing is dumped
#define MADV_DODUMP 17u

#define DEV_ZERO 0x105u // major 1, minor 5

static struct aspace *own_space(void)
{
    return current_task()->aspace;
}

static u32 prot_from_user(u32 user)
{
    u32 prot = 0;
    if (user & USER_PROT_READ)
        prot |= PROT_R;
    if (user & USER_PROT_WRITE)
        prot |= PROT_W;
    if (user & USER_PROT_EXEC)
        prot |= PROT_X;
    return prot;
}

struct request {
    u32 addr, length, prot, flags;
    u64 offset;
};

static s32 map(const struct request *r, u32 area_flags, struct vnode *vn)
{
    assert_checked(own_space());
    u32 addr, map_flags = 0;
    if (r->flags & MAP_FIXED)
        map_flags |= MAP_AT_EXACTLY;
    if (r->flags & MAP_FIXED_NOREPLACE)
        map_flags |= MAP_NO_REPLACE;
    if (r->flags & (MAP_POPULATE | MAP_LOCKED))
        map_flags |= MAP_POPULATE_NOW;
    int err =
        aspace_map(own_space(), r->addr, r->length, prot_from_user(r->prot),
                   area_flags, map_flags, vn, vn ? r->offset : 0, &addr);
    return err ? err : (s32)addr;
}

// Whether a shared mapping may be, or become, writable.
static bool may_write(const struct request *r, const struct file *f)
{
    struct vnode *vn = f->vnode;
    if ((READ_ONCE(f->flags) & O_ACCMODE) != O_RDWR)
        return false;
    return !vn || !vn->ops->may_map_writable ||
           vn->ops->may_map_writable(vn, r->offset, r->length);
}

static s32 map_file(const struct request *r, u32 area_flags,
                    const struct file *f)
{
    u32 mode = READ_ONCE(f->flags) & O_ACCMODE;
    struct vnode *vn = f->vnode;
    if (READ_ONCE(f->flags) & O_PATH)
        return -EBADF;
    if (mode == O_WRONLY)
        return -EACCES;
    if (area_flags & AREA_SHARED && !may_write(r, f)) {
        if (r->prot & USER_PROT_WRITE)
            return -EACCES;
        area_flags |= AREA_NO_WRITE;
    }
    if (vn && vnode_type(vn) == S_IFCHR && vn->rdev == DEV_ZERO)
        return map(r, area_flags & ~AREA_NO_WRITE, NULL);
    if (!vn || vnode_type(vn) != S_IFREG)
        return -ENODEV;
    return map(r, area_flags, vn);
}

static s32 map_request(const struct request *r, u32 fd)
{
    u32 type = r->flags & MAP_TYPE, area_flags = 0;
    bool validate = type == MAP_SHARED_VALIDATE;
    if (type == MAP_SHARED || (validate && !(r->flags & MAP_ANONYMOUS)))
        area_flags = AREA_SHARED;
    else if (type != MAP_PRIVATE)
        return -EINVAL;
    if (validate && r->flags & ~MAP_VALIDATED)
        return -EOPNOTSUPP;
    if (!r->length || r->flags & (MAP_HUGETLB | MAP_GROWSDOWN))
        return -EINVAL;
    if (r->flags & MAP_ANONYMOUS)
        return map(r, area_flags, NULL);
    struct file *f;
    int err = fd_get(fd, &f);
    if (err)
        return err;
    s32 result = map_file(r, area_flags, f);
    file_unref(f);
    return result;
}

// mmap2(addr, length, prot, flags, fd, offset in pages)
s32 sys_mmap2(u32 address, u32 length, u32 protection, u32 flags, u32 fd,
              u32 page)
{
    struct request r = { address, length, protection, flags,
                         (u64)page << PAGE_SHIFT };
    return map_request(&r, fd);
}

// The old mmap: its six arguments are in memory, the offset is in bytes.
s32 sys_mmap(u32 arguments)
{
    u32 args[6];
    if (copy_from_user(args, arguments, sizeof(args)))
        return -EFAULT;
    if (args[5] % PAGE_SIZE)
        return -EINVAL;
    struct request r = { args[0], args[1], args[2], args[3], args[5] };
    return map_request(&r, args[4]);
}

s32 sys_brk(u32 end)
{
    return (s32)aspace_set_brk(own_space(), end);
}

s32 sys_munmap(u32 address, u32 length)
{
    return aspace_unmap(own_space(), address, length);
}

s32 sys_mprotect(u32 address, u32 length, u32 protection)
{
    if (protection & ~USER_PROT_MASK)
        return -EINVAL;
    return aspace_protect(own_space(), address, length,
                          prot_from_user(protection));
}

s32 sys_mremap(u32 address, u32 length, u32 new_length, u32 flags,
               u32 new_address)
{
    u32 addr;
    if (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED))
        return -EINVAL;
    int err = aspace_remap(own_space(), address, length, new_length,
                           flags & MREMAP_MAYMOVE, flags & MREMAP_FIXED,
                           new_address, &addr);
    return err ? err : (s32)addr;
}

// A shared page is the file's own: no write-back is needed.
s32 sys_msync(u32 address, u32 length, u32 flags)
{
    if (address % PAGE_SIZE || flags & ~(MS_ASYNC | MS_INVALIDATE | MS_SYNC) ||
        (flags & MS_ASYNC && flags & MS_SYNC))
        return -EINVAL;
    return aspace_check_mapped(own_space(), address, length);
}

s32 sys_madvise(u32 address, u32 length, u32 advice)
{
    if (address % PAGE_SIZE)
        return -EINVAL;
    if (advice == MADV_DONTNEED)
        return aspace_discard(own_space(), address, length);
    bool hint = advice <= MADV_WILLNEED || advice == MADV_FREE ||
                advice == MADV_DONTDUMP || advice == MADV_DODUMP;
    return hint ? aspace_check_mapped(own_space(), address, length) : -EINVAL;
}

#define MINCORE_PART 256u // pages queried at once

s32 sys_mincore(u32 address, u32 length, u32 vector)
{
    u8 part[MINCORE_PART];
    if (address % PAGE_SIZE)
        return -EINVAL;
    if (address >= USER_END || length > USER_END - address)
        return -ENOMEM;
    u32 pages = DIV_ROUND_UP(length, PAGE_SIZE);
    for (u32 done = 0; done < pages; done += MINCORE_PART) {
        u32 n = MIN(pages - done, MINCORE_PART);
        int err =
            aspace_resident(own_space(), address + done * PAGE_SIZE, n, part);
        if (!err)
            err = copy_to_user(vector + done, part, n);
        if (err)
            return err;
    }
    return 0;
}
