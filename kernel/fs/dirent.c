// Directory listing: positions 0 and 1 are "." and "..", which the VFS emits
// for every file system; the file system's own positions follow.
#include "kernel/fs/dirent.h"

#include "kernel/base/errno.h"
#include "kernel/fs/path.h"

#define DOT_ENTRIES 2
#define TYPE_DIRECTORY (S_IFDIR >> 12)

bool dirent_emit(struct dirent_sink *sink, u64 ino, u64 next_pos, u32 type,
                 const char *name, size_t len)
{
    bool dots = name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'));
    if (dots)
        return true;
    // `type` may also be the file type bits of a mode.
    if (type & S_IFMT)
        type = (type & S_IFMT) >> 12;
    return sink->take(sink, ino, next_pos + DOT_ENTRIES, type, name, len);
}

static bool emit_parent(struct vnode *dir, struct dirent_sink *s)
{
    struct vnode *parent;
    u64 ino = dir->ino;
    if (vnode_parent(dir, &parent) == 0) {
        ino = parent->ino;
        vnode_unref(parent);
    }
    return s->take(s, ino, 2, TYPE_DIRECTORY, "..", 2);
}

int vnode_readdir(struct vnode *dir, u64 *pos, struct dirent_sink *s)
{
    mutex_assert_held(&namespace_lock);
    if (!dir->ops->readdir)
        return -ENOTDIR;
    if (*pos == 0) {
        if (!s->take(s, dir->ino, 1, TYPE_DIRECTORY, ".", 1))
            return 0;
        *pos = 1;
    }
    if (*pos == 1) {
        if (!emit_parent(dir, s))
            return 0;
        *pos = DOT_ENTRIES;
    }
    u64 inner = *pos - DOT_ENTRIES;
    int err = dir->ops->readdir(dir, &inner, s);
    *pos = inner + DOT_ENTRIES;
    return err;
}
