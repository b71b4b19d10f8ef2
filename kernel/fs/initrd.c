// The root file system at start-up: the boot loader's modules, cpio archives
// that are unpacked over the root in order; later ones replace files of earlier
// ones.
//
// An error in an archive panics with the archive's name and the offset: an
// incomplete system must not run.
#include "kernel/fs/initrd.h"

#include "arch/boot.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/mount.h"
#include "kernel/fs/path.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "lib/cpio.h"
#include "lib/string.h"

// A file with several names is in the archive once for each name, with the
// contents at the last one: the vnode made for the first name is remembered.
struct hard_link {
    struct list node;
    u32 ino, dev_major, dev_minor;
    struct vnode *vnode;
};

// An archive entry replaces an existing file of the same name.
static int make_way(const char *path)
{
    struct vnode *v;
    if (vfs_lookup(NULL, path, 0, &v) != 0)
        return 0;
    bool dir = vnode_is_dir(v);
    vnode_unref(v);
    return dir ? -EEXIST : vfs_unlink(NULL, path);
}

// Archives may omit the directories above a file.
static int make_parents(const char *path)
{
    if (!path[0]) // the entry's name is empty
        return -ENOENT;
    char *copy = kstrdup(path);
    int err = 0;
    if (!copy)
        return -ENOMEM;
    for (char *slash = copy + 1; (slash = strchr(slash, '/')) && !err;
         slash++) {
        *slash = '\0';
        err = vfs_mkdir(NULL, copy, 0755);
        if (err == -EEXIST)
            err = 0;
        *slash = '/';
    }
    kfree(copy);
    return err;
}

static void set_attributes(struct vnode *v, const struct cpio_entry *e)
{
    spin_lock(&v->lock);
    v->mode = (v->mode & S_IFMT) | (e->mode & 07777);
    v->uid = e->uid;
    v->gid = e->gid;
    v->mtime = (struct timespec_k){ .sec = e->mtime };
    spin_unlock(&v->lock);
}

static int write_contents(struct vnode *v, const struct cpio_entry *e)
{
    assert_checked(v->file_ops && v->file_ops->write);
    struct file file = {
        .refs = 1, .flags = O_WRONLY, .ops = v->file_ops, .vnode = v
    };
    struct iovec_k part;
    struct io io;
    u64 pos = 0;
    if (!e->size)
        return 0;
    io_init(&io, &part, (u32)e->data, e->size, true);
    int done = v->file_ops->write(&file, &io, &pos);
    if (done < 0)
        return done;
    return (u32)done == e->size ? 0 : -ENOSPC;
}

static int make_symlink(const struct cpio_entry *e)
{
    char target[PATH_MAX_LEN / 4];
    if (e->size >= sizeof(target))
        return -ENAMETOOLONG;
    memcpy(target, e->data, e->size);
    target[e->size] = '\0';
    return vfs_symlink(NULL, e->name, target);
}

static int make_node(const struct cpio_entry *e)
{
    u32 rdev = e->rdev_major << 8 | e->rdev_minor;
    int err;
    switch (e->mode & S_IFMT) {
    case S_IFDIR:
        err = vfs_mkdir(NULL, e->name, e->mode);
        return err == -EEXIST ? 0 : err;
    case S_IFLNK:
        return make_symlink(e);
    default:
        return vfs_mknod(NULL, e->name, e->mode, rdev);
    }
}

static struct hard_link *find_link(struct list *links,
                                   const struct cpio_entry *e)
{
    struct hard_link *l;
    list_for_each(l, links, node) {
        if (l->ino == e->ino && l->dev_major == e->dev_major &&
            l->dev_minor == e->dev_minor)
            return l;
    }
    return NULL;
}

static int remember_link(struct list *links, const struct cpio_entry *e,
                         struct vnode *v)
{
    assert_checked(e->nlink > 1);
    struct hard_link *l = kmalloc(sizeof(*l));
    if (!l)
        return -ENOMEM;
    *l = (struct hard_link){
        .ino = e->ino,
        .dev_major = e->dev_major,
        .dev_minor = e->dev_minor,
        .vnode = v,
    };
    vnode_ref(v);
    list_push_back(links, &l->node);
    return 0;
}

static void forget_links(struct list *links)
{
    while (!list_empty(links)) {
        struct hard_link *l = list_first(links, struct hard_link, node);
        list_remove(&l->node);
        vnode_unref(l->vnode);
        kfree(l);
    }
}

// Creates the name; *out is its vnode, referenced.
static int make_name(const struct cpio_entry *e, struct list *links,
                     struct vnode **out)
{
    bool several = (e->mode & S_IFMT) == S_IFREG && e->nlink > 1;
    struct hard_link *l = several ? find_link(links, e) : NULL;
    int err = l ? vfs_link(l->vnode, NULL, e->name) : make_node(e);
    if (!err)
        err = vfs_lookup(NULL, e->name, 0, out);
    if (!err && several && !l) {
        err = remember_link(links, e, *out);
        if (err)
            vnode_unref(*out);
    }
    return err;
}

static int unpack_entry(const struct cpio_entry *e, struct list *links)
{
    struct vnode *v;
    int err = (e->mode & S_IFMT) == S_IFDIR ? 0 : make_way(e->name);
    if (!err)
        err = make_name(e, links, &v);
    if (err == -ENOENT) {
        err = make_parents(e->name);
        if (!err)
            err = make_name(e, links, &v);
    }
    if (err)
        return err;
    if ((e->mode & S_IFMT) == S_IFREG)
        err = write_contents(v, e);
    set_attributes(v, e);
    vnode_unref(v);
    return err;
}

// The archive's memory is freed as it is unpacked, so the reported shortage,
// the rest of this file, is a lower bound.
NORETURN static void no_memory(const char *name, const struct cpio_entry *e)
{
    struct vnode *v;
    u64 missing = e->size;
    if (!vfs_lookup(NULL, e->name, 0, &v))
        missing -= MIN(v->size, missing);
    panic("no memory for %s of initrd %s: at least %u KiB more are needed than "
          "%u MiB",
          e->name, name, DIV_ROUND_UP((u32)missing, 1024u),
          DIV_ROUND_UP(frames_total(), 256u));
}

u32 initrd_unpack(const char *name, const u8 *archive, size_t size,
                  void (*unpacked)(const u8 *archive, size_t pos))
{
    assert_may_sleep();
    struct list links = LIST_INIT(links);
    struct cpio_entry e;
    u32 files = 0;
    size_t pos = 0, start = 0;
    enum cpio_result result;
    while ((result = cpio_next(archive, size, &pos, &e)) == CPIO_ENTRY) {
        int err = unpack_entry(&e, &links);
        if (err == -ENOMEM || err == -ENOSPC)
            no_memory(name, &e);
        if (err)
            panic("initrd %s: cannot unpack %s at offset %u: error %d", name,
                  e.name, start, -err);
        files++;
        start = pos;
        if (unpacked)
            unpacked(archive, pos);
    }
    forget_links(&links);
    if (result == CPIO_TRUNCATED)
        panic(
            "initrd truncated: module %s ends at byte %u, within the entry at "
            "offset %u",
            name, size, pos);
    if (result == CPIO_CORRUPT)
        panic("initrd corrupt: module %s has no cpio entry at offset %u", name,
              pos);
    return files;
}

// The module being unpacked is freed up to this address: only the current file
// is in memory twice.
static paddr_t released;

static void release_until(paddr_t end)
{
    if (end <= released)
        return;
    frame_release_region(released, end - released);
    released = end;
}

static void release_unpacked(const u8 *archive, size_t pos)
{
    paddr_t end = virt_to_phys(archive) + pos;
    release_until(ALIGN_DOWN(end, (paddr_t)PAGE_SIZE));
}

static u32 unpack_low(const struct boot_module *m)
{
    released = m->base;
    u32 files = initrd_unpack(m->name, phys_to_virt(m->base), m->size,
                              release_unpacked);
    release_until(m->base + m->size);
    return files;
}

// Not in the direct map: beyond it, or hidden by the kernel's image. The module
// is kept until it is unpacked.
static u32 unpack_high(const struct boot_module *m)
{
    paddr_t base = ALIGN_DOWN(m->base, (paddr_t)PAGE_SIZE);
    u32 offset = (u32)(m->base - base);
    u32 pages = DIV_ROUND_UP(offset + m->size, PAGE_SIZE);
    u8 *view = vmap_frames(base, pages);
    if (!view)
        panic("initrd %s: %u KiB at %#llx cannot be mapped: too large", m->name,
              m->size / 1024, m->base);
    u32 files = initrd_unpack(m->name, view + offset, m->size, NULL);
    vmap_free(view, pages);
    return files;
}

static void unpack_module(const struct boot_module *m)
{
    bool low = !m->size || (m->base + m->size <= DIRECT_MAP_MAX &&
                            !is_hidden(m->base, m->size));
    u32 files = low ? unpack_low(m) : unpack_high(m);
    log_printf("initrd: %s: %u files, %u KiB%s\n", m->name, files,
               m->size / 1024, low ? "" : ", not in the direct map");
}

void initrd_init(void)
{
    for (u32 i = 0; i < boot_info.module_count; i++)
        unpack_module(&boot_info.modules[i]);
}
