// The file layer: vnodes, open files, descriptor tables, path walking.
//
// Locking: `namespace_lock` (mutex) guards the shape of the tree: directory
// contents, mounts, nlink. vnode->lock (spinlock) guards its data pages, size
// and times. Neither is held while user memory is accessed. Reference counts
// are atomic. The address space's mutex may be held when vnode->lock is taken.
#pragma once

#include "arch/mmu.h"
#include "kernel/mm/file_pages.h"
#include "kernel/sync/mutex.h"

struct vnode;
struct file;
struct frame;
struct dirent_sink;
struct poll_wait;
struct file_locks;

// The memory of a read or write: user memory or (kernel readers: exec, initrd,
// tests) kernel memory.
struct iovec_k {
    u32 base, len;
};
struct io {
    struct iovec_k *iov; // the parts not yet done
    u32 count;
    size_t left; // bytes left in all parts
    bool kernel; // addresses are kernel addresses
};
// Move n bytes (<= io->left) between `buf` and the io; advance it. 0, -EFAULT.
int io_to(struct io *io, const void *buf, size_t n); // a read's data
int io_from(struct io *io, void *buf, size_t n);     // a write's data
int io_zero(struct io *io, size_t n);
void io_init(struct io *io, struct iovec_k *single, u32 addr, size_t n,
             bool kernel);

#define S_IFMT 0170000u
#define S_IFSOCK 0140000u
#define S_IFLNK 0120000u
#define S_IFREG 0100000u
#define S_IFBLK 0060000u
#define S_IFDIR 0040000u
#define S_IFCHR 0020000u
#define S_IFIFO 0010000u
#define S_ISUID 04000u
#define S_ISGID 02000u
#define S_IXGRP 010u
#define MAY_R 4u
#define MAY_W 2u
#define MAY_X 1u

struct vnode_ops {
    // Directories; under namespace_lock. lookup: a referenced vnode in *out.
    int (*lookup)(struct vnode *dir, const char *name, size_t len,
                  struct vnode **out);
    int (*create)(struct vnode *dir, const char *name, size_t len, u32 mode,
                  u32 rdev, struct vnode **out); // any type, by mode
    int (*link)(struct vnode *dir, const char *name, size_t len,
                struct vnode *target);
    int (*unlink)(struct vnode *dir, const char *name, size_t len,
                  struct vnode *target); // also empty directories
    int (*rename)(struct vnode *from, const char *fname, size_t flen,
                  struct vnode *to, const char *tname, size_t tlen,
                  struct vnode *moved, struct vnode *replaced);
    // Entries from position *pos on; the sink reports when it is full.
    int (*readdir)(struct vnode *dir, u64 *pos, struct dirent_sink *sink);
    int (*readlink)(struct vnode *v, char *buf, size_t size); // length
    // Makes `file` usable: may set file->ops and file->data. NULL: v->file_ops.
    int (*open)(struct vnode *v, struct file *file);
    int (*truncate)(struct vnode *v, u64 size);
    // The frame (referenced) of page `index`; a hole is allocated when `write`,
    // else it may give a zero frame. -EIO beyond the end. Spinlocks only.
    int (*get_page)(struct vnode *v, u32 index, bool write, struct frame **out);
    // Optional: whether the bytes may be written through a shared mapping of a
    // file that is open for writing. If not, such a mapping is read-only, for
    // ever, and -EACCES if it is to be writable at once. NULL: they may.
    bool (*may_map_writable)(struct vnode *v, u64 offset, u32 length);
    void (*release)(struct vnode *v); // the last reference is gone: free it
    // Optional: the directory (not referenced) and name of `v`, valid while
    // namespace_lock is held. -ENOENT: none known. For vfs_path().
    int (*locate)(struct vnode *v, struct vnode **dir, const char **name,
                  size_t *len);
    // As create, for a symlink to `target`.
    int (*symlink)(struct vnode *dir, const char *name, size_t len,
                   const char *target, struct vnode **out);
    // Optional, of a symlink: its target (referenced), regardless of its text.
    // Under namespace_lock. For /proc/PID/fd.
    int (*follow)(struct vnode *v, struct vnode **out);
    // Optional: writes what is not yet where it lasts, of the whole file
    // system.
    int (*sync)(struct vnode *v);
};

struct timespec_k {
    s64 sec;
    u32 nsec;
};

struct vnode {
    u32 refs;
    u32 mode; // type and permission bits
    u32 nlink, uid, gid;
    u64 ino, size;
    u32 rdev; // character devices: major << 8 | minor
    struct timespec_k atime, mtime, ctime;
    struct spinlock lock;
    struct mount *mount;        // the file system it belongs to
    struct mount *mounted_here; // directory covered by this mount
    const struct vnode_ops *ops;
    const struct file_ops *file_ops;
    void *data;
    u32 pages;                // frames of its data, for st_blocks
    struct file_locks *locks; // NULL: none yet; kernel/fs/locks.c
    s32 users;                // > 0: writers; < 0: running programs; atomic
};

// The type never changes; the permission bits do, under `lock`.
static inline u32 vnode_type(const struct vnode *v)
{
    return READ_ONCE(v->mode) & S_IFMT;
}

struct mount {
    struct list node;
    const char *type; // tmpfs, devfs, proc
    char path[64];    // the mount point, for /proc/mounts
    struct vnode *root, *covered;
    u32 dev;
    bool detached;  // out of the tree but still in use
    u32 nosuid;     // set-user-id bits are ignored; a bool, marked
    bool read_only; // for /proc/mounts; the file system refuses writes
    int (*statfs)(struct mount *m, u64 *total_pages, u64 *free_pages);
};

#define POLLIN 1
#define POLLPRI 2
#define POLLOUT 4
#define POLLERR 8
#define POLLHUP 16
#define POLLNVAL 32

struct file_ops {
    // Bytes done or -errno. *pos is file->pos or a pread's position.
    int (*read)(struct file *f, struct io *io, u64 *pos);
    int (*write)(struct file *f, struct io *io, u64 *pos);
    // Events that are pending now; registers with pw (if not NULL) for later
    // ones.
    u32 (*poll)(struct file *f, struct poll_wait *pw);
    int (*ioctl)(struct file *f, u32 cmd, u32 arg);
    void (*release)(struct file *f); // the last descriptor is closed
    bool seekable;
    bool socket;
};

#define O_ACCMODE 3u
#define O_RDONLY 0u
#define O_WRONLY 1u
#define O_RDWR 2u
#define O_CREAT 0100u
#define O_EXCL 0200u
#define O_NOCTTY 0400u
#define O_TRUNC 01000u
#define O_APPEND 02000u
#define O_NONBLOCK 04000u
#define O_LARGEFILE 0100000u
#define O_DIRECTORY 0200000u
#define O_NOFOLLOW 0400000u
#define O_CLOEXEC 02000000u
#define O_PATH 010000000u

struct file {
    u32 refs;
    u32 flags; // O_*
    const struct file_ops *ops;
    struct vnode *vnode; // may be NULL (phones)
    struct mutex pos_lock;
    u64 pos;
    void *data;
};

extern struct mutex namespace_lock;

// Clears the set-id bits: called when a file gets another owner, or is written
// to by others than root. Under v->lock.
void vnode_drop_set_id(struct vnode *v);
void vnode_written(struct vnode *v); // by the current task
// The current task's file size limit. Beyond it: vnode_too_large sends SIGXFSZ
// and returns -EFBIG.
u64 vnode_size_limit(void);
int vnode_too_large(void);

// Whether the file's mode and owner allow the current task this access: 0 or
// -EACCES (kernel/fs/permission.c). really: for its real user, for access(2).
int vnode_may(const struct vnode *v, u32 wanted);
int vnode_may_really(const struct vnode *v, u32 wanted);

struct timespec_k vfs_now(void); // wall clock

// Path walking for the current task. `at`: where relative paths start (NULL:
// cwd).
#define WALK_FOLLOW 1u // follow a symlink at the end
int vfs_lookup(struct vnode *at, const char *path, u32 flags,
               struct vnode **out);
// The absolute path of a directory or file as far as known; length or -errno.
// With or without namespace_lock.
int vfs_path(struct vnode *v, char *buf, size_t size);
int vfs_open(struct vnode *at, const char *path, u32 flags, u32 mode,
             struct file **out);
int vfs_mkdir(struct vnode *at, const char *path, u32 mode);
int vfs_mknod(struct vnode *at, const char *path, u32 mode, u32 rdev);
int vfs_symlink(struct vnode *at, const char *path, const char *target);
// Kernel-side read of a regular file at `pos`. Bytes or -errno.
int vnode_read(struct vnode *v, u64 pos, void *buf, size_t n);

struct file *file_alloc(const struct file_ops *ops, u32 flags); // refs 1
void file_ref(struct file *f);
void file_unref(struct file *f);

// Descriptor tables. fd_get takes a reference on the file.
struct files;
void files_close_on_exec(struct files *f);
int fd_get(u32 fd, struct file **out);    // -EBADF
bool fd_is(u32 fd, const struct file *f); // still
// Consumes the reference, even on failure.
int fd_install(struct file *f, bool cloexec, u32 from);
int fd_close(u32 fd);

// poll(): a file's poll operation registers the waiter with its queues.
#define POLL_QUEUES_MAX 4 // per file
void poll_register(struct poll_wait *pw, struct waitq *q);

// Directory listing: a file system passes each entry to the sink. False: the
// sink is full, stop before this entry.
bool dirent_emit(struct dirent_sink *sink, u64 ino, u64 next_pos, u32 type,
                 const char *name, size_t len);

// Start-up: mounts tmpfs on /, unpacks the modules, mounts /dev and /proc.
void vfs_init(void);

// Character devices register by linker set.
struct char_device {
    const char *name; // under /dev
    u32 rdev, mode;
    const struct file_ops *ops;
    int (*open)(struct file *f); // may be NULL
};
#define CHAR_DEVICE(d) LINKER_SET_ADD(char_devices, d)
