// The file system /sensors: a tmpfs whose regular files are sensors.
//
// References decide how long a sensor lives that is new, or closed and was
// read: its name holds none. A name can so be found whose vnode has no
// reference left and is about to be freed; lookup does not revive it, and says
// -ENOENT.
//
// namespace_lock guards names, as in tmpfs. There is one instance: it exists
// for ever, mounted or not, since the kernel's sensors are in it.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/path.h"
#include "kernel/fs/text_file.h"
#include "kernel/mm/heap.h"
#include "kernel/sensor/kernel_sensor.h"
#include "kernel/sensor/sensor.h"
#include "kernel/task/task.h"

static bool is_sensor(const struct vnode *v)
{
    return vnode_type(v) == S_IFREG;
}

static bool opened_by_reader(const struct file *f)
{
    return (READ_ONCE(f->flags) & O_ACCMODE) == O_RDONLY;
}

// --- names ------------------------------------------------------------------

// Takes a reference unless the last one is gone.
bool sensor_ref_if_used(struct vnode *v)
{
    u32 refs = __atomic_load_n(&v->refs, __ATOMIC_RELAXED);
    while (refs &&
           !__atomic_compare_exchange_n(&v->refs, &refs, refs + 1, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return refs;
}

static int lookup(struct vnode *dir, const char *name, size_t len,
                  struct vnode **out)
{
    mutex_assert_held(&namespace_lock);
    kernel_gauges_refresh(dir);
    struct tmpfs_node *found = tmpfs_find(dir, name, len);
    if (!found || !sensor_ref_if_used(&found->v))
        return -ENOENT;
    *out = &found->v;
    return 0;
}

static int readdir(struct vnode *dir, u64 *pos, struct dirent_sink *sink)
{
    mutex_assert_held(&namespace_lock);
    kernel_gauges_refresh(dir);
    return tmpfs_readdir(dir, pos, sink);
}

static int create(struct vnode *dir, const char *name, size_t len, u32 mode,
                  u32 rdev, struct vnode **out)
{
    mutex_assert_held(&namespace_lock);
    u32 type = mode & S_IFMT;
    if (type != S_IFREG && type != S_IFDIR)
        return -EPERM;
    int err = tmpfs_create(dir, name, len, mode, rdev, out);
    if (err || type == S_IFDIR)
        return err;
    err = sensor_create(*out, current_task(), NULL);
    if (err) {
        tmpfs_remove_name(tmpfs_node(*out));
        vnode_unref(*out);
        return err;
    }
    vnode_unref(*out); // the name's reference: it is not `named`
    return 0;
}

// Gives the name of an existing sensor a reference, or takes it away.
static void set_named(struct sensor *s, bool named)
{
    mutex_assert_held(&namespace_lock);
    if (s->named == named || !tmpfs_node(s->vnode)->entry)
        return;
    WRITE_ONCE(s->named, named);
    if (named)
        vnode_ref(s->vnode);
    else
        vnode_unref(s->vnode);
}

void sensor_set_named(struct sensor *s, bool named)
{
    bool held = mutex_held(&namespace_lock);
    if (!held)
        mutex_lock(&namespace_lock);
    set_named(s, named);
    if (!held)
        mutex_unlock(&namespace_lock);
}

static int unlink(struct vnode *dir, const char *name, size_t len,
                  struct vnode *target)
{
    mutex_assert_held(&namespace_lock);
    struct sensor *s = is_sensor(target) ? sensor_of(target) : NULL;
    if (!s)
        return tmpfs_unlink(dir, name, len, target);
    if (s->kernel || READ_ONCE(s->traced))
        return -EPERM;
    set_named(s, true); // tmpfs takes the reference
    int err = tmpfs_unlink(dir, name, len, target);
    if (!err)
        WRITE_ONCE(s->named, false);
    return err;
}

static void release(struct vnode *v)
{
    struct tmpfs_node *n = tmpfs_node(v);
    if (is_sensor(v) && n->entry) {
        // The name is left, without a reference: lookups no longer find it. It
        // gets one, and is removed; this function is then called again.
        bool held = mutex_held(&namespace_lock);
        if (!held)
            mutex_lock(&namespace_lock);
        v->locks = NULL; // freed already
        __atomic_store_n(&v->refs, 1, __ATOMIC_RELAXED);
        tmpfs_remove_name(n);
        if (!held)
            mutex_unlock(&namespace_lock);
        return;
    }
    if (is_sensor(v) && sensor_of(v))
        sensor_free(sensor_of(v));
    tmpfs_release(v);
}

// --- pages ------------------------------------------------------------------

static int get_page(struct vnode *v, u32 index, bool write UNUSED,
                    struct frame **out)
{
    if (!is_sensor(v))
        return -EIO;
    spin_lock(&v->lock);
    *out = sensor_frame(sensor_of(v), index);
    if (*out)
        frame_ref(*out);
    spin_unlock(&v->lock);
    return *out ? 0 : -EIO;
}

// The header is the kernel's, and so are all pages of the kernel's sensors,
// which cannot be opened for writing.
static bool may_map_writable(struct vnode *v, u64 offset, u32 length UNUSED)
{
    return offset >= PAGE_SIZE && READ_ONCE(sensor_of(v)->bytes);
}

// --- files ------------------------------------------------------------------

// Only the owner opens a sensor for writing, whatever the mode: root, too.
static int open(struct vnode *v, struct file *f)
{
    if (!is_sensor(v))
        return tmpfs_open(v, f);
    struct sensor *s = sensor_of(v);
    bool reads = opened_by_reader(f);
    if (!reads && READ_ONCE(s->owner) != current_task())
        return -EACCES;
    struct text_file *text = text_file_create();
    if (!text)
        return -ENOMEM;
    int err = reads && s->kernel ? kernel_sensor_begin(s->kernel) : 0;
    if (err) {
        text_file_free(text);
        return err;
    }
    if (reads)
        __atomic_add_fetch(&s->readers, 1, __ATOMIC_RELAXED);
    f->data = text;
    return 0;
}

static void file_release(struct file *f)
{
    struct sensor *s = sensor_of(f->vnode);
    text_file_free(f->data);
    if (!opened_by_reader(f))
        return;
    if (s->kernel)
        kernel_sensor_end(s->kernel);
    if (!__atomic_sub_fetch(&s->readers, 1, __ATOMIC_RELAXED) &&
        sensor_closed(s))
        sensor_set_named(s, false); // the last one has gone
}

static int read(struct file *f, struct io *io, u64 *pos)
{
    if (!f->data) // a program is to be loaded from it
        return -EINVAL;
    return text_file_read(f->data, io, pos, sensor_text, sensor_of(f->vnode));
}

static int file_ioctl(struct file *f, u32 cmd, u32 arg)
{
    struct sensor *s = sensor_of(f->vnode);
    if (cmd != SENSOR_CREATE)
        return -ENOTTY;
    if (opened_by_reader(f))
        return -EBADF;
    return sensor_request(s, arg);
}

static const struct vnode_ops sensor_ops = {
    .lookup = lookup,
    .create = create,
    .unlink = unlink,
    .readdir = readdir,
    .open = open,
    .get_page = get_page,
    .may_map_writable = may_map_writable,
    .release = release,
    .locate = tmpfs_locate,
};

static const struct file_ops sensor_file_ops = {
    .read = read,
    .ioctl = file_ioctl,
    .release = file_release,
    .seekable = true,
};

int sensors_mount(struct mount **out)
{
    static bool exists;
    if (exists)
        return -EBUSY;
    int err = tmpfs_mount_as("sensors", &sensor_ops, &sensor_file_ops, out);
    if (err)
        return err;
    exists = true;
    WRITE_ONCE((*out)->root->mode, S_IFDIR | 01777);
    return kernel_sensors_publish((*out)->root);
}
