// Descriptor tables.
//
// `lock` guards table, capacity and the bit maps against other threads (file.h
// describes reads without it). Files are released after the lock is dropped,
// because closing may sleep.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/file.h"
#include "kernel/fs/locks.h"
#include "kernel/mm/heap.h"
#include "lib/string.h"

SLAB_CACHE_COUNTED(files_cache, struct files, refs);

static inline bool bit_test(const u32 *map, u32 bit)
{
    return map[bit / 32] >> bit % 32 & 1;
}

static inline void bit_set(u32 *map, u32 bit, bool value)
{
    assert_checked(bit < FD_MAX);
    u32 mask = 1u << bit % 32;
    u32 *word = &map[bit / 32]; // close_marked reads it
    WRITE_ONCE(*word, value ? *word | mask : *word & ~mask);
}

// The lowest unused descriptor >= `from`; FD_MAX when there is none.
static u32 first_unused(const struct files *fs, u32 from)
{
    spin_assert_held(&fs->lock);
    if (from >= FD_MAX)
        return FD_MAX;
    u32 below = (1u << from % 32) - 1;
    for (u32 word = from / 32; word < FD_MAX / 32; word++) {
        u32 taken = fs->used[word] | below;
        if (taken != ~0u)
            return word * 32 + (u32)__builtin_ctz(~taken);
        below = 0;
    }
    return FD_MAX;
}

int files_create(struct files **out)
{
    struct files *fs = slab_alloc(&files_cache);
    if (!fs)
        return -ENOMEM;
    memset(fs, 0, sizeof(*fs));
    fs->refs = 1;
    spin_init(&fs->lock, "files");
    fs->table = fs->first;
    fs->capacity = FD_INLINE;
    *out = fs;
    return 0;
}

static void table_free(struct files *fs, struct file **table)
{
    assert_checked(table);
    if (table != fs->first)
        kfree(table);
}

// Makes room for descriptor `fd`. The lock is held on entry and return, but
// dropped in between. 0 or -ENOMEM.
static int make_room(struct files *fs, u32 fd)
{
    spin_assert_held(&fs->lock);
    assert_checked(fd < FD_MAX);
    while (fd >= fs->capacity) {
        u32 capacity = fs->capacity;
        while (capacity <= fd)
            capacity *= 2;
        spin_unlock(&fs->lock);
        struct file **table = kzalloc(capacity * sizeof(*table));
        spin_lock(&fs->lock);
        if (!table)
            return -ENOMEM;
        struct file **old = fs->table;
        if (capacity <= fs->capacity) { // another thread has grown it
            kfree(table);
            continue;
        }
        memcpy(table, old, fs->capacity * sizeof(*table));
        fs->table = table;
        WRITE_ONCE(fs->capacity, capacity); // /proc reads it
        table_free(fs, old);
    }
    return 0;
}

int files_fork(struct files *from, struct files **out)
{
    struct files *fs;
    int err = files_create(&fs);
    if (err)
        return err;
    spin_lock(&from->lock);
    while (from->capacity > fs->capacity && !err) {
        u32 capacity = from->capacity;
        spin_unlock(&from->lock);
        spin_lock(&fs->lock);
        err = make_room(fs, capacity - 1);
        spin_unlock(&fs->lock);
        spin_lock(&from->lock);
    }
    for (u32 word = 0; word < from->capacity / 32 && !err; word++) {
        fs->used[word] = from->used[word];
        fs->cloexec[word] = from->cloexec[word];
        for (u32 left = from->used[word]; left; left &= left - 1) {
            u32 fd = word * 32 + (u32)__builtin_ctz(left);
            fs->table[fd] = from->table[fd];
            file_ref(fs->table[fd]);
        }
    }
    spin_unlock(&from->lock);
    if (err)
        files_unref(fs);
    else
        *out = fs;
    return err;
}

void files_ref(struct files *fs)
{
    u32 old = __atomic_fetch_add(&fs->refs, 1, __ATOMIC_RELAXED);
    assert(old); // there must be a reference already
}

// Removes a descriptor from the table; NULL when it was not open.
static struct file *take(struct files *fs, u32 fd)
{
    spin_lock(&fs->lock);
    struct file *f = fd < fs->capacity ? fs->table[fd] : NULL;
    if (f) {
        fs->table[fd] = NULL;
        bit_set(fs->used, fd, false);
        bit_set(fs->cloexec, fd, false);
    }
    spin_unlock(&fs->lock);
    return f;
}

// Closing any descriptor of a file drops the table's record locks on it.
static void close_file(struct files *fs, struct file *f)
{
    assert_may_sleep();
    if (f->vnode)
        locks_drop(f->vnode, fs);
    file_unref(f);
}

static void close_marked(struct files *fs, const u32 *map)
{
    for (u32 word = 0; word < READ_ONCE(fs->capacity) / 32; word++) {
        for (u32 left = READ_ONCE(map[word]); left; left &= left - 1) {
            struct file *f = take(fs, word * 32 + (u32)__builtin_ctz(left));
            if (f)
                close_file(fs, f);
        }
    }
}

void files_unref(struct files *fs)
{
    assert_checked(READ_ONCE(fs->refs));
    if (__atomic_sub_fetch(&fs->refs, 1, __ATOMIC_ACQ_REL))
        return;
    close_marked(fs, fs->used);
    table_free(fs, fs->table);
    slab_free(&files_cache, fs);
}

void files_close_on_exec(struct files *fs)
{
    close_marked(fs, fs->cloexec);
}

int fd_get(u32 fd, struct file **out)
{
    struct files *fs = current_task()->files;
    spin_lock(&fs->lock);
    struct file *f = fd < fs->capacity ? fs->table[fd] : NULL;
    if (f)
        file_ref(f);
    spin_unlock(&fs->lock);
    *out = f;
    return f ? 0 : -EBADF;
}

bool fd_is(u32 fd, const struct file *f)
{
    struct files *fs = current_task()->files;
    spin_lock(&fs->lock);
    bool same = fd < fs->capacity && fs->table[fd] == f;
    spin_unlock(&fs->lock);
    return same;
}

static u32 descriptor_limit(void)
{
    return MIN(READ_ONCE(current_task()->limits[LIMIT_NOFILE].soft), FD_MAX);
}

int fd_install(struct file *f, bool cloexec, u32 from)
{
    assert_checked(READ_ONCE(f->refs));
    struct files *fs = current_task()->files;
    u32 fd;
    int err = 0;
    spin_lock(&fs->lock);
    // make_room may drop the lock: the free descriptor can be taken in between.
    while ((fd = first_unused(fs, from)) >= fs->capacity) {
        err = fd < descriptor_limit() ? make_room(fs, fd) : -EMFILE;
        if (err)
            break;
    }
    if (!err && fd >= descriptor_limit())
        err = -EMFILE;
    if (!err) {
        fs->table[fd] = f;
        bit_set(fs->used, fd, true);
        bit_set(fs->cloexec, fd, cloexec);
    }
    spin_unlock(&fs->lock);
    if (!err)
        return (int)fd;
    file_unref(f);
    return err;
}

int fd_replace(struct file *f, u32 fd, bool cloexec)
{
    assert_checked(READ_ONCE(f->refs));
    struct files *fs = current_task()->files;
    struct file *old = NULL;
    int err = fd < descriptor_limit() ? 0 : -EBADF;
    if (!err) {
        spin_lock(&fs->lock);
        err = make_room(fs, fd);
        if (!err) {
            old = fs->table[fd];
            fs->table[fd] = f;
            bit_set(fs->used, fd, true);
            bit_set(fs->cloexec, fd, cloexec);
        }
        spin_unlock(&fs->lock);
    }
    if (err)
        file_unref(f);
    if (old)
        close_file(fs, old);
    return err ? err : (int)fd;
}

int fd_cloexec(u32 fd, bool set, bool value, bool *old)
{
    struct files *fs = current_task()->files;
    spin_lock(&fs->lock);
    bool open = fd < fs->capacity && fs->table[fd];
    if (open) {
        *old = bit_test(fs->cloexec, fd);
        if (set)
            bit_set(fs->cloexec, fd, value);
    }
    spin_unlock(&fs->lock);
    return open ? 0 : -EBADF;
}

int fd_close(u32 fd)
{
    struct files *fs = current_task()->files;
    struct file *f = take(fs, fd);
    if (!f)
        return -EBADF;
    close_file(fs, f);
    return 0;
}
