// Open files: the objects that descriptors refer to.
//
// The reference count is atomic; `flags` is changed by F_SETFL only, in one
// store; `pos` is guarded by pos_lock where files can be shared.
#include "kernel/fs/file.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/locks.h"
#include "kernel/fs/mount.h"
#include "kernel/fs/path.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"

SLAB_CACHE_COUNTED(file_cache, struct file, refs);

// For directories and O_PATH files, which have no readable contents.
static const struct file_ops place_ops = { .seekable = true };

struct file *file_alloc(const struct file_ops *ops, u32 flags)
{
    struct file *f = slab_alloc(&file_cache);
    if (!f)
        return NULL;
    f->refs = 1;
    f->flags = flags;
    f->ops = ops;
    f->vnode = NULL;
    mutex_init(&f->pos_lock, "file position");
    f->pos = 0;
    f->data = NULL;
    return f;
}

// A Feistel network with keys drawn at start-up: different objects get
// different numbers, which do not reveal kernel addresses.
static u32 number_keys[4];

void file_numbers_init(void)
{
    random_bytes(number_keys, sizeof(number_keys));
}

u32 file_number(const struct file *f)
{
    u32 object = (u32)(f->data ? f->data : f);
    u16 left = (u16)(object >> 16), right = (u16)object;
    for (u32 i = 0; i < ARRAY_SIZE(number_keys); i++) {
        u16 mixed = (u16)(((right ^ number_keys[i]) * 0x85ebca6bu) >> 16);
        u16 next = left ^ mixed;
        left = right;
        right = next;
    }
    return (u32)left << 16 | right;
}

void file_ref(struct file *f)
{
    u32 old = __atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED);
    assert(old); // there must be a reference already
}

u64 file_position(struct file *f)
{
    mutex_lock(&f->pos_lock);
    u64 pos = f->pos;
    mutex_unlock(&f->pos_lock);
    return pos;
}

void file_set_position(struct file *f, u64 pos)
{
    mutex_lock(&f->pos_lock);
    f->pos = pos;
    mutex_unlock(&f->pos_lock);
}

void file_discard(struct file *f)
{
    if (f->vnode)
        vnode_unref(f->vnode);
    slab_free(&file_cache, f);
}

static bool is_writer(const struct file *f)
{
    return f->vnode && vnode_type(f->vnode) == S_IFREG && file_writable(f);
}

void file_unref(struct file *f)
{
    u32 before = __atomic_fetch_sub(&f->refs, 1, __ATOMIC_ACQ_REL);
    assert(before > 0);
    if (before > 1)
        return;
    if (f->vnode)
        locks_drop(f->vnode, f);
    if (f->ops->release)
        f->ops->release(f);
    if (is_writer(f))
        vnode_end_writing(f->vnode);
    file_discard(f);
}

// The vnode for open(), created if requested. Under namespace_lock.
static int find_or_create(struct vnode *at, const char *path, u32 flags,
                          u32 mode, bool *created, struct vnode **out)
{
    mutex_assert_held(&namespace_lock);
    struct walk w;
    bool exclusive = (flags & O_CREAT) && (flags & O_EXCL);
    bool follow = !(flags & O_NOFOLLOW) && !exclusive;
    int err = walk_path(&w, at, path, follow ? WALK_FOLLOW : 0);
    if (err)
        return err;
    *created = false;
    *out = w.vnode;
    if (w.vnode && exclusive)
        err = -EEXIST;
    else if (w.vnode)
        vnode_ref(w.vnode);
    else if (!(flags & O_CREAT))
        err = -ENOENT;
    else if (w.slash)
        err = -EISDIR;
    else {
        err = walk_create(&w, S_IFREG | (mode & 07777), 0, out);
        *created = !err;
    }
    walk_done(&w);
    return err;
}

static int check_type(const struct vnode *v, u32 flags)
{
    u32 type = vnode_type(v);
    if (type == S_IFLNK && !(flags & O_PATH))
        return flags & O_DIRECTORY ? -ENOTDIR : -ELOOP;
    if ((flags & O_DIRECTORY) && type != S_IFDIR)
        return -ENOTDIR;
    if (type == S_IFDIR && !(flags & O_PATH) &&
        ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC))))
        return -EISDIR;
    if (type == S_IFSOCK && !(flags & O_PATH))
        return -ENXIO;
    return 0;
}

// Also for a file that is opened only for reading.
static int truncate_for_open(struct vnode *v)
{
    if (vnode_type(v) != S_IFREG || !v->ops->truncate) // a text file of /proc
        return 0;
    int err = vnode_begin_writing(v);
    if (err)
        return err;
    err = v->ops->truncate(v, 0);
    vnode_end_writing(v);
    return err;
}

// Opens a vnode; consumes the reference to it.
static int open_vnode(struct vnode *v, u32 flags, bool created,
                      struct file **out)
{
    const u32 only_for_open = O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC;
    struct file *f = file_alloc(v->file_ops, flags & ~only_for_open);
    if (!f) {
        vnode_unref(v);
        return -ENOMEM;
    }
    f->vnode = v;
    int err = is_writer(f) ? vnode_begin_writing(v) : 0;
    if (err) {
        file_discard(f);
        return err;
    }
    if (flags & O_PATH)
        f->ops = &place_ops;
    else if (v->ops->open) {
        f->flags |= flags & O_NOCTTY; // checked by a terminal
        err = v->ops->open(v, f);
        f->flags &= ~O_NOCTTY;
    }
    if (!err && !f->ops) {
        if (vnode_is_dir(v))
            f->ops = &place_ops;
        else
            err = -ENXIO;
    }
    if (err) {
        if (is_writer(f))
            vnode_end_writing(v);
        file_discard(f);
        return err;
    }
    if ((flags & O_TRUNC) && !(flags & O_PATH) && !created)
        err = truncate_for_open(v);
    if (err)
        file_unref(f);
    else
        *out = f;
    return err;
}

int vfs_open(struct vnode *at, const char *path, u32 flags, u32 mode,
             struct file **out)
{
    struct vnode *v;
    bool created;
    if ((flags & O_CREAT) && (flags & O_DIRECTORY) && !(flags & O_PATH))
        return -EINVAL;
    if (flags & O_PATH)
        flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    mutex_lock(&namespace_lock);
    int err = find_or_create(at, path, flags, mode, &created, &v);
    mutex_unlock(&namespace_lock);
    if (err)
        return err;
    err = check_type(v, flags);
    if (!err && !created && !is_root()) // root may read and write anything
        err = vnode_may_open(v, flags);
    if (err) {
        vnode_unref(v);
        return err;
    }
    return open_vnode(v, flags, created, out);
}
