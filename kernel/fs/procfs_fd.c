// /proc/PID/fd, and the links of a task to the files it uses.
//
// What belongs to another task is referenced with tasks_lock held, while the
// task is not `exiting` (exiting begins by saying so under that lock), and
// looked at afterwards.

#include "kernel/errno.h"
#include "kernel/fs/file.h"
#include "kernel/fs/procfs.h"
#include "kernel/sched/task.h"
#include "lib/format.h"
#include "lib/string.h"

// A task's descriptor table, referenced; NULL: it has none any more.
static struct files *files_of(struct task *task)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    struct files *files = task->exiting ? NULL : task->files;

    if (files != NULL)
        files_ref(files);
    spin_unlock_irq(&tasks_lock, flags);
    return files;
}

static struct files *files_of_node(const struct proc_node *n)
{
    struct task *task = proc_find_task(n);
    struct files *files = task != NULL ? files_of(task) : NULL;

    if (task != NULL)
        task_unref(task);
    return files;
}

u32 proc_fd_table_size(struct task *task)
{
    struct files *files = files_of(task);
    u32 size = files != NULL ? READ_ONCE(files->capacity) : 0;

    if (files != NULL)
        files_unref(files);
    return size;
}

static bool next_fd(const struct proc_node *dir, u32 from, u32 *number)
{
    struct files *files = files_of_node(dir);
    bool found = false;

    if (files == NULL)
        return false;
    spin_lock(&files->lock);
    for (u32 fd = from; fd < files->capacity && !found; fd++) {
        if (files->table[fd] != NULL) {
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

// What a descriptor of the node's task refers to, referenced, or NULL.
static struct file *file_of_node(const struct proc_node *n)
{
    struct files *files = files_of_node(n);
    struct file *f = NULL;

    if (files == NULL)
        return NULL;
    spin_lock(&files->lock);
    if (n->fd < files->capacity)
        f = files->table[n->fd];
    if (f != NULL)
        file_ref(f);
    spin_unlock(&files->lock);
    files_unref(files);
    return f;
}

// Its path; for what has none, what it is.
static int describe(struct vnode *v, char *buf, size_t size)
{
    int len = v != NULL ? vfs_path(v, buf, size) : -ENOENT;

    if (len != -ENOENT)
        return len;
    if (v == NULL)
        return format(buf, size, "anon_inode:[phone]");
    if ((v->mode & S_IFMT) == S_IFIFO)
        return format(buf, size, "pipe:[%llu]", v->ino);
    return format(buf, size, "(deleted)");
}

static int link_fd(struct vnode *v, char *buf, size_t size)
{
    struct file *f = file_of_node(proc_node(v));
    int len;

    if (f == NULL)
        return -ENOENT;
    len = describe(f->vnode, buf, size);
    file_unref(f);
    return len;
}

static const struct proc_entry fd_entry = {
    "FD", S_IFLNK | 0700, NULL, link_fd, NULL,
};

const struct proc_dir proc_fd_dir = {
    .numbered = &fd_entry,
    .next = next_fd,
    .set = set_fd,
};

// --- exe, cwd, root
// ---------------------------------------------------------------

int proc_link_exe(struct vnode *v, char *buf, size_t size)
{
    struct task *task = proc_find_task(proc_node(v));
    int len = -ENOENT;
    u32 flags;

    if (task == NULL)
        return -ENOENT;
    flags = spin_lock_irq(&task->lock);
    if (task->path != NULL && !task->zombie)
        len = MIN(strlcpy(buf, task->path, size), size - 1);
    spin_unlock_irq(&task->lock, flags);
    task_unref(task);
    return len;
}

static int link_directory(const struct proc_node *n, bool root, char *buf,
                          size_t size)
{
    struct task *task = proc_find_task(n);
    struct vnode *v = NULL;
    u32 flags;
    int len;

    if (task == NULL)
        return -ENOENT;
    flags = spin_lock_irq(&tasks_lock);
    if (!task->exiting)
        v = root ? task->root : task->cwd;
    if (v != NULL)
        vnode_ref(v);
    spin_unlock_irq(&tasks_lock, flags);
    task_unref(task);
    if (v == NULL)
        return -ENOENT;
    len = describe(v, buf, size);
    vnode_unref(v);
    return len;
}

int proc_link_cwd(struct vnode *v, char *buf, size_t size)
{
    return link_directory(proc_node(v), false, buf, size);
}

int proc_link_root(struct vnode *v, char *buf, size_t size)
{
    return link_directory(proc_node(v), true, buf, size);
}
