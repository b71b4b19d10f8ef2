// Helpers of the file layer's in-kernel tests.
#pragma once

#include "kernel/fs/vfs.h"
#include "kernel/mm/frame.h"
#include "tests/kernel/test.h"

static inline u64 file_frames(void)
{
    struct frame_stats s;
    frame_stats(&s);
    return s.by_use[FRAME_FILE];
}

static inline int transfer(struct file *f, void *buf, size_t n, u64 pos,
                           bool write)
{
    struct iovec_k part;
    struct io io;
    io_init(&io, &part, (u32)buf, n, true);
    return write ? f->ops->write(f, &io, &pos) : f->ops->read(f, &io, &pos);
}

static inline struct file *open_file(const char *path)
{
    struct file *f = NULL;
    int err = vfs_open(NULL, path, O_RDWR | O_CREAT | O_TRUNC, 0644, &f);
    if (err)
        panic("test: cannot open %s: %d", path, err);
    return f;
}
