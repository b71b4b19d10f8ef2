// Open files and descriptor tables, as the file system calls use them.
//
// `files->lock` guards the table when several threads use it. A thread that is
// the table's only user reads it without the lock: no other thread can close a
// descriptor, so it can borrow the file instead of referencing it.
#pragma once

#include "kernel/base/errno.h"
#include "kernel/fs/vfs.h"
#include "kernel/task/task.h"

#define FD_INLINE 32u // descriptors that need no table of their own

struct files {
    u32 refs; // tasks; atomic
    struct spinlock lock;
    struct file **table;
    u32 capacity;          // entries in table, a multiple of 32
    u32 used[FD_MAX / 32]; // bit maps
    u32 cloexec[FD_MAX / 32];
    struct file *first[FD_INLINE];
};

struct fd_ref {
    struct file *file;
    bool counted;
};

static inline bool files_shared(const struct files *fs)
{
    return READ_ONCE(fs->refs) > 1 ||
           READ_ONCE(current_task()->thread_count) > 1;
}

// For a file without a vnode: a number for the object behind it, which is the
// same for both ends of a pipe. It is not an address.
u32 file_number(const struct file *f);
void file_numbers_init(void);

// The file behind a descriptor for the duration of a system call; release it
// with fd_return. 0 or -EBADF.
static inline int fd_borrow(u32 fd, struct fd_ref *r)
{
    struct files *fs = current_task()->files;
    if (unlikely(files_shared(fs))) {
        r->counted = true;
        return fd_get(fd, &r->file);
    }
    r->counted = false;
    r->file = fd < fs->capacity ? fs->table[fd] : NULL;
    return r->file ? 0 : -EBADF;
}

static inline void fd_return(struct fd_ref *r)
{
    if (unlikely(r->counted))
        file_unref(r->file);
}

static inline bool file_readable(const struct file *f)
{
    return (READ_ONCE(f->flags) & O_ACCMODE) != O_WRONLY &&
           !(READ_ONCE(f->flags) & O_PATH);
}

static inline bool file_writable(const struct file *f)
{
    return (READ_ONCE(f->flags) & O_ACCMODE) != O_RDONLY &&
           !(READ_ONCE(f->flags) & O_PATH);
}

// The file's own position, read and written atomically.
u64 file_position(struct file *f);
void file_set_position(struct file *f, u64 pos);

// Frees a file without calling its release: its open failed, or release is
// done.
void file_discard(struct file *f);

// dup2 and dup3: installs `f` (reference always consumed) at `fd`, closing the
// file that was there. The descriptor, or -EBADF, -ENOMEM.
int fd_replace(struct file *f, u32 fd, bool cloexec);
// -EBADF; the flag's old value in *old.
int fd_cloexec(u32 fd, bool set, bool value, bool *old);
