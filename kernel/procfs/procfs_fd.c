// /proc/PID/fd, and the links of a task to the files it uses.
//
// An object of another task is referenced with tasks_lock held, while the task
// is not `exiting` (which an exit sets first, under that lock), and used after
// the lock is released.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/file.h"
#include "kernel/procfs/procfs.h"
#include "kernel/task/task.h"
#include "lib/format.h"
#include "lib/string.h"

// A task's descriptor table, referenced; NULL: the task is exiting.
static struct files *files_of(struct task *task)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    struct files *files = task->exiting ? NULL : task->files;
    if (files)
        files_ref(files);
    spin_unlock_irq(&tasks_lock, flags);
    return files;
}

// NULL in case of any error: the directory's mode shows a lack of permission.
static struct files *files_of_node(const struct proc_node *n)
{
    struct task *task;
    struct files *files;
    if (proc_inspect_task(n, &task))
        return NULL;
    files = files_of(task);
    task_unref(task);
    return files;
}

u32 proc_fd_table_size(struct task *task)
{
    struct files *files = files_of(task);
    u32 size = files != NULL ? READ_ONCE(files->capacity) : 0;
    if (files)
        files_unref(files);
    return size;
}

static bool next_fd(const struct proc_node *dir, u32 from, u32 *number)
{
    assert_may_sleep();
    struct files *files = files_of_node(dir);
    bool found = false;

    if (!files)
        return false;
    spin_lock(&files->lock);
    for (u32 fd = from; fd < files->capacity && !found; fd++) {
        if (files->table[fd]) {
            *number = fd;
            found = true;
        }
    }
    spin_unlock(&files->lock);
    files_unref(files);
    return found;
}

static void set_fd(struct proc_node *child, u32 number)
{
    child->fd = number;
}

// The file behind a descriptor of the node's task, referenced, or NULL.
static struct file *file_of_node(const struct proc_node *n)
{
    struct files *files = files_of_node(n);
    struct file *f = NULL;
    if (!files)
        return NULL;
    spin_lock(&files->lock);
    if (n->fd < files->capacity)
        f = files->table[n->fd];
    if (f)
        file_ref(f);
    spin_unlock(&files->lock);
    files_unref(files);
    return f;
}

// The file's path, or "(deleted)".
static int describe(struct vnode *v, char *buf, size_t size)
{
    int len = vfs_path(v, buf, size);
    if (len != -ENOENT)
        return len;
    return format(buf, size, "(deleted)");
}

// A file without a vnode is named by the number of the object behind it, which
// is the same for both ends of a pipe.
static int describe_anonymous(const struct file *f, char *buf, size_t size)
{
    assert(!f->vnode);
    const char *kind = f->ops->socket  ? "socket"
                       : f->ops->write ? "pipe"
                                       : "phone";

    return format(buf, size, "%s:[%u]", kind, file_number(f));
}

static int link_fd(struct vnode *v, char *buf, size_t size)
{
    struct file *f = file_of_node(proc_node(v));
    int len;
    if (!f)
        return -ENOENT;
    if (f->vnode)
        len = describe(f->vnode, buf, size);
    else
        len = describe_anonymous(f, buf, size);
    file_unref(f);
    return len;
}

// --- opening through the link -----------------------------------------------

// A file without a vnode (a pipe, a phone) is opened as a wrapper of the same
// file: `data` is a reference to it.

static int through_read(struct file *f, struct io *io, u64 *pos)
{
    struct file *inner = f->data;
    return !inner->ops->read ? -EINVAL : inner->ops->read(inner, io, pos);
}

static int through_write(struct file *f, struct io *io, u64 *pos)
{
    struct file *inner = f->data;
    return !inner->ops->write ? -EINVAL : inner->ops->write(inner, io, pos);
}

static u32 through_poll(struct file *f, struct poll_wait *pw)
{
    struct file *inner = f->data;
    return !inner->ops->poll ? POLLIN | POLLOUT : inner->ops->poll(inner, pw);
}

static int through_ioctl(struct file *f, u32 cmd, u32 arg)
{
    struct file *inner = f->data;
    return !inner->ops->ioctl ? -ENOTTY : inner->ops->ioctl(inner, cmd, arg);
}

static void through_release(struct file *f)
{
    file_unref(f->data);
}

static const struct file_ops through_ops = {
    .read = through_read,
    .write = through_write,
    .poll = through_poll,
    .ioctl = through_ioctl,
    .release = through_release,
};

static int open_through(struct vnode *v, struct file *f)
{
    struct file *inner = file_of_node(proc_node(v));
    u32 access = READ_ONCE(f->flags) & O_ACCMODE;
    if (!inner)
        return -ENOENT;
    if ((access != O_WRONLY && !file_readable(inner)) ||
        (access != O_RDONLY && !file_writable(inner))) {
        file_unref(inner);
        return -EACCES;
    }
    if (inner->ops->socket) {
        file_unref(inner);
        return -ENXIO;
    }
    f->ops = &through_ops;
    f->data = inner;
    return 0;
}

static const struct proc_entry through_entry = {
    .name = "FD",
    .mode = S_IFIFO | 0600,
    .open = open_through,
};

static int follow_fd(struct vnode *v, struct vnode **out)
{
    struct proc_node *n = proc_node(v);
    struct file *f = file_of_node(n);
    int err = 0;
    if (!f)
        return -ENOENT;
    if (f->vnode) {
        vnode_ref(f->vnode);
        *out = f->vnode;
    } else {
        err = proc_make_twin(n, &through_entry, out);
    }
    file_unref(f);
    return err;
}

static const struct proc_entry fd_entry = {
    .name = "FD",
    .mode = S_IFLNK | 0700,
    .link = link_fd,
    .follow = follow_fd,
};

const struct proc_dir proc_fd_dir = {
    .numbered = &fd_entry,
    .next = next_fd,
    .set = set_fd,
};

// --- exe, cwd, root ---------------------------------------------------------

int proc_link_exe(struct vnode *v, char *buf, size_t size)
{
    struct task *task;
    int len = -ENOENT, err = proc_inspect_task(proc_node(v), &task);
    u32 flags;
    if (err)
        return err == -ESRCH ? -ENOENT : err;
    flags = spin_lock_irq(&task->lock);
    if (task->path && !READ_ONCE(task->zombie))
        len = MIN(strlcpy(buf, task->path, size), size - 1);
    spin_unlock_irq(&task->lock, flags);
    task_unref(task);
    return len;
}

// A task's root or current directory, referenced. 0 or -ENOENT.
static int directory_of(const struct proc_node *n, bool root,
                        struct vnode **out)
{
    struct task *task;
    struct vnode *v = NULL;
    u32 flags;
    int err = proc_inspect_task(n, &task);
    if (err)
        return err == -ESRCH ? -ENOENT : err;
    flags = spin_lock_irq(&tasks_lock);
    if (!task->exiting)
        v = root ? task->root : task->cwd;
    if (v)
        vnode_ref(v);
    spin_unlock_irq(&tasks_lock, flags);
    task_unref(task);
    *out = v;
    return v != NULL ? 0 : -ENOENT;
}

int proc_follow_cwd(struct vnode *v, struct vnode **out)
{
    return directory_of(proc_node(v), false, out);
}

int proc_follow_root(struct vnode *v, struct vnode **out)
{
    return directory_of(proc_node(v), true, out);
}

static int link_directory(const struct proc_node *n, bool root, char *buf,
                          size_t size)
{
    struct vnode *dir;
    int result = directory_of(n, root, &dir);
    if (result)
        return result;
    result = describe(dir, buf, size);
    vnode_unref(dir);
    return result;
}

int proc_link_cwd(struct vnode *v, char *buf, size_t size)
{
    return link_directory(proc_node(v), false, buf, size);
}

int proc_link_root(struct vnode *v, char *buf, size_t size)
{
    return link_directory(proc_node(v), true, buf, size);
}
