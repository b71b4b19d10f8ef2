// Shared by the parts of /proc: procfs.c (the tree), procfs_task.c and
// procfs_fd.c (a task's files), procfs_maps.c, procfs_system.c (the rest).
#pragma once

#include "arch/clock.h"
#include "kernel/fs/text_file.h"
#include "kernel/fs/vfs.h"

struct task;
struct thread;
struct proc_dir;
struct proc_node;

// A name in a directory: an entry of a static table, or one entry for all the
// numbers in the directory.
struct proc_entry {
    const char *name;
    u32 mode; // type and permissions
    // By type, one of: the contents (arg: the struct proc_node), the target of
    // a symlink (its length or -errno), the directory.
    text_maker make;
    // Optional: takes what is written. 0 or -errno.
    int (*write)(const struct proc_node *n, struct io *io);
    int (*link)(struct vnode *v, char *buf, size_t size);
    const struct proc_dir *dir;
    // Optional: the symlink's target, regardless of its text.
    int (*follow)(struct vnode *v, struct vnode **out);
    // Optional: opens a file that has no text (vnode_ops.open).
    int (*open)(struct vnode *v, struct file *f);
};

#define PROC_FILE(file, ...)                              \
    {                                                     \
        .name = file, .mode = S_IFREG | 0444, __VA_ARGS__ \
    }
#define PROC_LINK(file, ...)                              \
    {                                                     \
        .name = file, .mode = S_IFLNK | 0777, __VA_ARGS__ \
    }
#define PROC_DIRECTORY(file, permissions, list)                    \
    {                                                              \
        .name = file, .mode = S_IFDIR | (permissions), .dir = list \
    }

#define PROC_NAME_MAX 24

// A vnode of /proc: created by lookup, freed with the last reference. It is
// constant. It names a task by its number only: each use checks whether the
// task still exists.
struct proc_node {
    struct vnode v;
    const struct proc_entry *entry;
    struct proc_node *parent; // a reference; NULL: the root
    u32 pid, tid, fd;         // those on the path to this node, else 0
    char name[PROC_NAME_MAX];
};

static inline struct proc_node *proc_node(struct vnode *v)
{
    return container_of(v, struct proc_node, v);
}

struct proc_dir {
    const struct proc_entry *entries;
    u32 count;
    // For a directory with numbers: the entry that they share; the first number
    // that is at least `from` (false: none); and how the child stores it.
    const struct proc_entry *numbered;
    bool (*next)(const struct proc_node *dir, u32 from, u32 *number);
    void (*set)(struct proc_node *child, u32 number);
};

extern const struct proc_entry proc_root_entry; // procfs_system.c
extern const struct proc_entry proc_task_entry; // procfs_task.c: /proc/PID
extern const struct proc_dir proc_fd_dir;       // procfs_fd.c

bool proc_task_next(const struct proc_node *dir, u32 from, u32 *number);
void proc_set_pid(struct proc_node *child, u32 number);

// A node of `entry` in the place of `n`, a number in a directory.
int proc_make_twin(struct proc_node *n, const struct proc_entry *entry,
                   struct vnode **out);

// The task of a node, referenced, or NULL when it has ended.
struct task *proc_find_task(const struct proc_node *n);
// The same for data that other users may not read: -ESRCH, or -EACCES.
int proc_inspect_task(const struct proc_node *n, struct task **out);

// procfs_maps.c, procfs_fd.c
int proc_make_maps(struct chain *t, void *arg);
int proc_link_exe(struct vnode *v, char *buf, size_t size);
int proc_link_cwd(struct vnode *v, char *buf, size_t size);
int proc_link_root(struct vnode *v, char *buf, size_t size);
int proc_follow_exe(struct vnode *v, struct vnode **out);
int proc_follow_cwd(struct vnode *v, struct vnode **out);
int proc_follow_root(struct vnode *v, struct vnode **out);
u32 proc_fd_table_size(struct task *task);

// procfs_system.c
int proc_make_mounts(struct chain *t, void *arg);

// Clock ticks of the user interface (USER_HZ 100).
#define PROC_TICK_NS (NSEC_PER_SEC / 100)
static inline u64 proc_ticks(u64 cycles)
{
    return clock_tsc_to_ns(cycles) / PROC_TICK_NS;
}
