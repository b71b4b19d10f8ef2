// FAT: what files contain; see fat.h.
//
// The clusters that a write needs are added to the chain first, in memory; the
// data are written, then the table, then the size. So a file never has a size
// that its chain or its data do not have.
#include "kernel/base/errno.h"
#include "kernel/fs/fat.h"
#include "lib/assert.h"
#include "lib/string.h"

#define SIZE_MAX_FAT 0xffffffffu

static u32 cluster_bytes(const struct fat *f)
{
    return f->cluster_sectors * FAT_SECTOR;
}

// The cluster that has the file's byte `pos`; `grow`: it is added if it is the
// next one. -EIO: the chain is too short.
static int seek(struct fat *f, struct fat_node *n, u32 pos, bool grow)
{
    u32 wanted = pos / cluster_bytes(f);
    int err = 0;
    if (!n->first) {
        if (!grow || wanted)
            return grow ? -EINVAL : -EIO;
        err = fat_append(f, 0, &n->first);
        if (err)
            n->first = 0;
    }
    if (!err && (!n->cluster || n->index > wanted)) {
        n->index = 0;
        n->cluster = n->first;
    }
    while (!err && n->index < wanted) {
        u32 next;
        err = fat_next(f, n->cluster, &next);
        if (!err && next == FAT_END)
            err = grow ? fat_append(f, n->cluster, &next) : -EIO;
        if (err)
            break;
        n->index++;
        n->cluster = next;
    }
    return err || fat_valid(f, n->cluster) ? err : -EIO;
}

int fat_check(struct fat *f, const struct fat_node *n)
{
    u32 needed = n->size / cluster_bytes(f) + (n->size % cluster_bytes(f) != 0);
    u32 cluster = n->first, count = 0;
    if (!cluster)
        return needed || n->attributes & FAT_DIRECTORY ? -EIO : 0;
    for (; cluster != FAT_END; count++) {
        if (count > f->clusters)
            return -EIO; // it comes to itself
        int err = fat_next(f, cluster, &cluster);
        if (err)
            return err;
    }
    return count < needed ? -EIO : 0;
}

// A part of a sector.
static int transfer_part(struct fat *f, bool write, u32 sector, u32 offset,
                         void *data, u32 bytes)
{
    int err = f->disk.transfer(f->disk.arg, false, sector, 1, f->part);
    if (err)
        return err;
    if (!write) {
        memcpy(data, f->part + offset, bytes);
        return 0;
    }
    memcpy(f->part + offset, data, bytes);
    return f->disk.transfer(f->disk.arg, true, sector, 1, f->part);
}

// As many sectors as follow each other on the disk, up to `most`, from the
// cluster of the node on, whose first `skip` sectors do not count.
static int adjacent(struct fat *f, struct fat_node *n, u32 skip, u32 most,
                    bool grow, u32 *count)
{
    struct fat_node ahead = *n;
    *count = f->cluster_sectors - skip;
    while (*count < most) {
        u32 next;
        int err = fat_next(f, ahead.cluster, &next);
        if (!err && next == FAT_END) {
            err = grow ? fat_append(f, ahead.cluster, &next) : 0;
            if (err == -ENOSPC)
                break;
        }
        if (err)
            return err;
        if (next != ahead.cluster + 1)
            break;
        ahead.cluster = next;
        ahead.index++;
        *count += f->cluster_sectors;
        *n = ahead;
    }
    *count = MIN(*count, most);
    return 0;
}

// One transfer; returns the bytes done.
static int transfer(struct fat *f, bool write, struct fat_node *n, u32 pos,
                    void *data, u32 bytes)
{
    u32 offset = pos % FAT_SECTOR;
    int err = seek(f, n, pos, write);
    if (err)
        return err;
    u32 skip = pos % cluster_bytes(f) / FAT_SECTOR;
    u32 sector = fat_sector(f, n->cluster) + skip;
    if (offset || bytes < FAT_SECTOR) {
        bytes = MIN(bytes, FAT_SECTOR - offset);
        err = transfer_part(f, write, sector, offset, data, bytes);
        return err ? err : (int)bytes;
    }
    u32 count, most = MIN(bytes / FAT_SECTOR, f->disk.at_once);
    err = adjacent(f, n, skip, most, write, &count);
    if (!err)
        err = f->disk.transfer(f->disk.arg, write, sector, count, data);
    return err ? err : (int)(count * FAT_SECTOR);
}

int fat_read(struct fat *f, struct fat_node *n, u32 pos, void *data, u32 bytes)
{
    u32 done = 0;
    int err = 0;
    if (pos >= n->size)
        return 0;
    bytes = MIN(bytes, n->size - pos);
    while (done < bytes) {
        err =
            transfer(f, false, n, pos + done, (u8 *)data + done, bytes - done);
        if (err < 0)
            break;
        done += (u32)err;
    }
    return done ? (int)done : err;
}

int fat_write(struct fat *f, struct fat_node *n, u32 pos, const void *data,
              u32 bytes, struct fat_time now)
{
    struct fat_node before = *n;
    u32 done = 0;
    int err = 0;
    assert(pos <= n->size);
    if (pos == SIZE_MAX_FAT && bytes)
        return -EFBIG;
    bytes = MIN(bytes, SIZE_MAX_FAT - pos);
    while (done < bytes) {
        err = transfer(f, true, n, pos + done, (u8 *)data + done, bytes - done);
        if (err < 0)
            break;
        done += (u32)err;
    }
    if (err > 0)
        err = 0;
    if (done && (!err || err == -ENOSPC)) {
        n->size = MAX(n->size, pos + done);
        n->written = now;
        err = fat_update(f, n);
    }
    if (!err)
        return (int)done;
    *n = before;
    if (err != -ENOSPC)
        fat_forget(f);
    return err;
}

int fat_shrink(struct fat *f, struct fat_node *n, u32 size, struct fat_time now)
{
    struct fat_node before = *n;
    u32 first = n->first, last = 0;
    assert(size <= n->size);
    if (size) {
        int err = seek(f, n, size - 1, false);
        if (err)
            return err;
        last = n->cluster;
    } else {
        n->first = 0;
    }
    n->index = n->cluster = 0;
    n->size = size;
    n->written = now;
    int err = fat_update(f, n); // before others may get the clusters
    if (err)
        *n = before;
    else if (last)
        err = fat_cut(f, last);
    else if (first)
        err = fat_free_chain(f, first);
    return err ? err : fat_flush(f);
}

int fat_discard(struct fat *f, struct fat_node *n)
{
    u32 first = n->first;
    assert(n->slot == FAT_NO_SLOT);
    n->first = n->index = n->cluster = 0;
    int err = first ? fat_free_chain(f, first) : 0;
    return err ? err : fat_sync(f);
}
