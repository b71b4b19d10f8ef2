#include "kernel/syscall/vector.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"

_Static_assert(sizeof(struct iovec_k) == 8, "struct iovec of the ABI");

// The total is limited as a single transfer is.
static int check_parts(struct vector *v, u32 count)
{
    assert_checked(count <= IOV_MAX);
    u32 left = TRANSFER_MAX;
    for (u32 i = 0; i < count; i++) {
        struct iovec_k *part = &v->parts[i];
        if ((s32)part->len < 0)
            return -EINVAL;
        part->len = MIN(part->len, left);
        left -= part->len;
    }
    v->io = (struct io){ .iov = v->parts,
                         .count = count,
                         .left = TRANSFER_MAX - left };
    return 0;
}

void vector_put(struct vector *v)
{
    if (v->parts != v->small)
        kfree(v->parts);
}

int vector_get(struct vector *v, u32 addr, u32 count)
{
    if (count > IOV_MAX)
        return -EINVAL;
    v->parts = v->small;
    if (count > IOV_SMALL)
        v->parts = kmalloc(count * sizeof(struct iovec_k));
    if (!v->parts)
        return -ENOMEM;
    int err = copy_from_user(v->parts, addr, count * sizeof(struct iovec_k));
    if (!err)
        err = check_parts(v, count);
    if (err)
        vector_put(v);
    return err;
}
