// Pipes, with and without a name.
#pragma once

#include "kernel/fs/vfs.h"

#define PIPE_SIZE (16 * 4096u)
#define PIPE_ATOMIC 4096u // PIPE_BUF: writes up to this are never mixed

// The two ends of a new pipe; `flags`: O_NONBLOCK or 0. 0 or -ENOMEM.
int pipe_create(u32 flags, struct file **read_end, struct file **write_end);

// Opens a named pipe (vnode_ops.open of S_IFIFO): waits for the other side, as
// in open(2). v->data belongs to it. 0, -ENXIO, -ENOMEM, -ERESTARTSYS.
int fifo_open(struct vnode *v, struct file *f);

bool pipe_is(const struct file *f);
