// Receives the entries of a directory as its file system lists them.
#pragma once

#include "kernel/fs/vfs.h"

struct dirent_sink {
    // As dirent_emit, with `type` in the form of d_type.
    bool (*take)(struct dirent_sink *s, u64 ino, u64 next_pos, u32 type,
                 const char *name, size_t len);
};

// Lists a directory, with "." and "..", from *pos on. Under namespace_lock.
int vnode_readdir(struct vnode *dir, u64 *pos, struct dirent_sink *s);
