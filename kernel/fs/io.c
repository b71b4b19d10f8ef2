// The data of a read or write: user memory in parts (iovec), or kernel memory.
//
// Nothing is locked. On a fault in user memory, the bytes before the bad page
// are moved: callers count progress by io->left.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/vfs.h"
#include "lib/string.h"

enum io_op { TO_IO, FROM_IO, ZERO_IO };

static ALWAYS_INLINE int move_bytes(const struct io *io, u32 addr, void *buf,
                                    size_t n, enum io_op op)
{
    if (unlikely(io->kernel)) {
        if (op == TO_IO)
            memcpy((void *)addr, buf, n);
        else if (op == FROM_IO)
            memcpy(buf, (void *)addr, n);
        else
            memset((void *)addr, 0, n);
        return 0;
    }
    if (op == TO_IO)
        return copy_to_user(addr, buf, n);
    if (op == FROM_IO)
        return copy_from_user(buf, addr, n);
    return zero_user(addr, n);
}

static ALWAYS_INLINE void advance(struct io *io, size_t n)
{
    assert_checked(n <= io->iov->len && n <= io->left);
    io->iov->base += n;
    io->iov->len -= n;
    io->left -= n;
}

// Moves the bytes before the first bad page; always fails.
static NOINLINE int move_until_fault(struct io *io, u8 *buf, size_t n,
                                     enum io_op op)
{
    while (n) {
        u32 addr = io->iov->base;
        size_t part = MIN(n, PAGE_SIZE - (addr & ~PAGE_MASK));
        if (move_bytes(io, addr, buf, part, op))
            break;
        advance(io, part);
        buf += part;
        n -= part;
    }
    return -EFAULT;
}

// Moves n bytes across as many parts as needed.
static NOINLINE int move_parts(struct io *io, u8 *at, size_t n, enum io_op op)
{
    while (n) {
        size_t part = MIN(n, io->iov->len);
        if (unlikely(part == 0)) {
            assert_checked(io->count > 1);
            io->iov++;
            io->count--;
            continue;
        }
        if (unlikely(move_bytes(io, io->iov->base, at, part, op)))
            return move_until_fault(io, at, part, op);
        advance(io, part);
        at += part;
        n -= part;
    }
    return 0;
}

static ALWAYS_INLINE int move(struct io *io, void *buf, size_t n, enum io_op op)
{
    assert(n <= io->left);
    if (unlikely(n > io->iov->len))
        return move_parts(io, buf, n, op);
    if (unlikely(move_bytes(io, io->iov->base, buf, n, op)))
        return move_until_fault(io, buf, n, op);
    advance(io, n);
    return 0;
}

int io_to(struct io *io, const void *buf, size_t n)
{
    return move(io, (void *)buf, n, TO_IO);
}

int io_from(struct io *io, void *buf, size_t n)
{
    return move(io, buf, n, FROM_IO);
}

int io_zero(struct io *io, size_t n)
{
    return move(io, NULL, n, ZERO_IO);
}

void io_init(struct io *io, struct iovec_k *single, u32 addr, size_t n,
             bool kernel)
{
    *single = (struct iovec_k){ .base = addr, .len = n };
    *io = (struct io){ .iov = single, .count = 1, .left = n, .kernel = kernel };
}
