// /proc: the tree. What its files say is made by the other procfs_*.c, from
// tables of struct proc_entry.
//
// A vnode is made by each lookup and holds a reference to its directory's, so
// ".." and paths need no search. Nodes never change and are not locked.

#include "kernel/procfs/procfs.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/file.h"
#include "kernel/fs/mount.h"
#include "kernel/mm/heap.h"
#include "kernel/task/ids.h"
#include "kernel/task/task.h"
#include "lib/format.h"
#include "lib/string.h"

SLAB_CACHE_COUNTED(node_cache, struct proc_node, v.refs);

static const struct vnode_ops dir_ops, file_vnode_ops, link_ops, jump_ops;
static const struct file_ops dir_file_ops, text_ops;

// --- nodes ------------------------------------------------------------------

// A number that the same name has every time: task, thread, place in the
// directory (0: the directory of the task or thread itself).
#define INO_FD_BASE 0x800u
#define INO_NAME_BITS 12
#define INO_TID_BITS 22
#define INO_ROOT_PLACE 1u
_Static_assert(INO_FD_BASE + FD_MAX <= 1u << INO_NAME_BITS, "ino_of's places");
_Static_assert(ID_MAX < 1u << INO_TID_BITS, "ino_of's threads");

static u64 ino_of(u32 pid, u32 tid, u32 place)
{
    assert_checked(place < 1u << INO_NAME_BITS && tid <= ID_MAX);
    return ((u64)pid << INO_TID_BITS | tid) << INO_NAME_BITS | place;
}

static void init_vnode(struct proc_node *n, struct mount *m, u64 ino)
{
    assert_checked(n->entry);
    u32 mode = n->entry->mode;

    switch (mode & S_IFMT) {
    case S_IFDIR:
        vnode_init(&n->v, m, mode, &dir_ops, &dir_file_ops);
        break;
    case S_IFLNK:
        vnode_init(&n->v, m, mode,
                   n->entry->follow != NULL ? &jump_ops : &link_ops, NULL);
        break;
    default:
        vnode_init(&n->v, m, mode, &file_vnode_ops, &text_ops);
    }
    n->v.ino = ino;
}

// What another user's secrets may be in is root's, but to itself.
static void set_owner(struct proc_node *n, const struct task *task)
{
    bool guarded = READ_ONCE(task->guarded) && task != current_task();
    n->v.uid = guarded ? 0 : READ_ONCE(task->euid);
    n->v.gid = guarded ? 0 : READ_ONCE(task->egid);
}

// A child of `dir`: the entry, at its place, or (`number` not NULL) a number.
static int make_child(struct proc_node *dir, const struct proc_entry *entry,
                      u32 place, const u32 *number, struct vnode **out)
{
    assert_checked(dir->entry->dir && entry->name);
    struct proc_node *n = slab_alloc(&node_cache);
    struct task *task;

    if (n == NULL)
        return -ENOMEM;
    memset(n, 0, sizeof(*n));
    n->entry = entry;
    n->parent = dir;
    n->pid = dir->pid;
    n->tid = dir->tid;
    if (number != NULL) {
        dir->entry->dir->set(n, *number);
        format(n->name, sizeof(n->name), "%u", *number);
        place = entry->dir != NULL ? 0 : INO_FD_BASE + n->fd;
    } else {
        strlcpy(n->name, entry->name, sizeof(n->name));
    }
    init_vnode(n, dir->v.mount, ino_of(n->pid, n->tid, place));
    if (n->pid != 0) {
        task = proc_find_task(n);
        if (task == NULL) {
            slab_free(&node_cache, n);
            return -ENOENT;
        }
        set_owner(n, task);
        task_unref(task);
    }
    vnode_ref(&dir->v);
    *out = &n->v;
    return 0;
}

int proc_make_twin(struct proc_node *n, const struct proc_entry *entry,
                   struct vnode **out)
{
    assert(n->parent);
    return make_child(n->parent, entry, 0, &n->fd, out);
}

static void release_node(struct vnode *v)
{
    struct proc_node *n = proc_node(v);
    struct proc_node *parent = n->parent;

    if (parent == NULL)
        kfree(v->mount);
    slab_free(&node_cache, n);
    if (parent != NULL)
        vnode_unref(&parent->v);
}

static int locate_node(struct vnode *v, struct vnode **dir, const char **name,
                       size_t *len)
{
    struct proc_node *n = proc_node(v);

    if (n->parent == NULL)
        return -ENOENT;
    *dir = &n->parent->v;
    *name = n->name;
    *len = strlen(n->name);
    return 0;
}

struct task *proc_find_task(const struct proc_node *n)
{
    return task_find(n->pid);
}

int proc_inspect_task(const struct proc_node *n, struct task **out)
{
    struct task *task = proc_find_task(n);

    if (task == NULL)
        return -ESRCH;
    if (!may_inspect(task)) {
        task_unref(task);
        return -EACCES;
    }
    *out = task;
    return 0;
}

bool proc_task_next(const struct proc_node *dir UNUSED, u32 from, u32 *number)
{
    struct task *task = task_next(from);

    if (task == NULL)
        return false;
    *number = task->id;
    task_unref(task);
    return true;
}

void proc_set_pid(struct proc_node *child, u32 number)
{
    child->pid = number;
}

// --- directories ------------------------------------------------------------

#define NUMBER_DIGITS_MAX 9

// A number as it is in a listing: no sign, no zeros in front.
static bool parse_number(const char *name, size_t len, u32 *number)
{
    u32 value = 0;

    if (len == 0 || len > NUMBER_DIGITS_MAX || (name[0] == '0' && len > 1))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        value = value * 10 + (name[i] - '0');
    }
    *number = value;
    return true;
}

static int lookup(struct vnode *v, const char *name, size_t len,
                  struct vnode **out)
{
    mutex_assert_held(&namespace_lock);
    struct proc_node *n = proc_node(v);
    const struct proc_dir *dir = n->entry->dir;
    u32 number, found;

    if (len == 2 && name[0] == '.' && name[1] == '.') {
        if (n->parent == NULL)
            return -ENOENT;
        vnode_ref(&n->parent->v);
        *out = &n->parent->v;
        return 0;
    }
    for (u32 i = 0; i < dir->count; i++) {
        const char *entry_name = dir->entries[i].name;

        if (strlen(entry_name) == len && memcmp(entry_name, name, len) == 0)
            return make_child(n, &dir->entries[i], INO_ROOT_PLACE + 1 + i, NULL,
                              out);
    }
    if (dir->next == NULL || !parse_number(name, len, &number) ||
        !dir->next(n, number, &found) || found != number)
        return -ENOENT;
    return make_child(n, dir->numbered, 0, &number, out);
}

// Emits what a lookup of the name would find. False: the sink is full.
static bool emit(struct proc_node *n, const struct proc_entry *entry, u32 place,
                 const u32 *number, u64 next, struct dirent_sink *sink)
{
    struct vnode *v;
    struct proc_node *child;
    bool more = true;

    if (make_child(n, entry, place, number, &v) < 0)
        return true; // gone meanwhile
    child = proc_node(v);
    more = dirent_emit(sink, v->ino, next, vnode_type(v), child->name,
                       strlen(child->name));
    vnode_unref(v);
    return more;
}

// Positions: the places in the table, then the numbers, from the table's end.
static int readdir(struct vnode *v, u64 *pos, struct dirent_sink *sink)
{
    mutex_assert_held(&namespace_lock);
    struct proc_node *n = proc_node(v);
    const struct proc_dir *dir = n->entry->dir;
    u32 number;

    for (; *pos < dir->count; ++*pos) {
        u32 i = *pos;

        if (!emit(n, &dir->entries[i], INO_ROOT_PLACE + 1 + i, NULL, *pos + 1,
                  sink))
            return 0;
    }
    if (dir->next == NULL)
        return 0;
    while (*pos - dir->count <= UINT32_MAX &&
           dir->next(n, *pos - dir->count, &number)) {
        u64 next = (u64)number + dir->count + 1;

        if (!emit(n, dir->numbered, 0, &number, next, sink))
            return 0;
        *pos = next;
    }
    return 0;
}

static const struct vnode_ops dir_ops = {
    .lookup = lookup,
    .readdir = readdir,
    .release = release_node,
    .locate = locate_node,
};

static const struct file_ops dir_file_ops = { .seekable = true };

// --- symlinks and files -----------------------------------------------------

static int readlink(struct vnode *v, char *buf, size_t size)
{
    assert_checked(proc_node(v)->entry->link);
    return proc_node(v)->entry->link(v, buf, size);
}

static const struct vnode_ops link_ops = {
    .readlink = readlink,
    .release = release_node,
    .locate = locate_node,
};

static int follow(struct vnode *v, struct vnode **out)
{
    assert_checked(proc_node(v)->entry->follow);
    return proc_node(v)->entry->follow(v, out);
}

static const struct vnode_ops jump_ops = {
    .readlink = readlink,
    .follow = follow,
    .release = release_node,
    .locate = locate_node,
};

static int open_node(struct vnode *v, struct file *f)
{
    const struct proc_entry *entry = proc_node(v)->entry;

    if (entry->open != NULL)
        return entry->open(v, f);
    f->data = text_file_create();
    return f->data == NULL ? -ENOMEM : 0;
}

static int read_text(struct file *f, struct io *io, u64 *pos)
{
    assert_checked(f->data);
    struct proc_node *n = proc_node(f->vnode);

    return text_file_read(f->data, io, pos, n->entry->make, n);
}

static void close_text(struct file *f)
{
    text_file_free(f->data);
}

static const struct vnode_ops file_vnode_ops = {
    .open = open_node,
    .release = release_node,
    .locate = locate_node,
};

static const struct file_ops text_ops = {
    .read = read_text,
    .release = close_text,
    .seekable = true,
};

// --- the mount --------------------------------------------------------------

// Every other node has a reference to its parent.
bool procfs_busy(const struct mount *m, u32 ours)
{
    mutex_assert_held(&namespace_lock);
    return __atomic_load_n(&m->root->refs, __ATOMIC_RELAXED) != 1 + ours;
}

int procfs_mount(struct mount **out)
{
    struct proc_node *root = slab_alloc(&node_cache);

    if (root == NULL)
        return -ENOMEM;
    memset(root, 0, sizeof(*root));
    root->entry = &proc_root_entry;
    init_vnode(root, NULL, INO_ROOT_PLACE);
    *out = mount_create("proc", "", &root->v, NULL);
    if (*out == NULL) {
        vnode_unref(&root->v);
        return -ENOMEM;
    }
    return 0;
}
