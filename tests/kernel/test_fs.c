// The file layer from inside: names, mounts, the initrd, locks against a model,
// concurrent operations.
#include "arch/cpu.h"
#include "kernel/base/errno.h"
#include "kernel/fs/initrd.h"
#include "kernel/fs/locks.h"
#include "kernel/fs/mount.h"
#include "kernel/fs/path.h"
#include "kernel/fs/pipe.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"
#include "lib/format.h"
#include "lib/string.h"
#include "tests/kernel/fs_helpers.h"
#include "tests/kernel/test.h"

// --- names ------------------------------------------------------------------

KERNEL_TEST(fs_paths_back)
{
    struct vnode *v;
    char path[64];
    expect(vfs_mkdir(NULL, "/tmp/p1", 0755) == 0);
    expect(vfs_mkdir(NULL, "/tmp/p1/p2", 0755) == 0);
    expect(vfs_mknod(NULL, "/tmp/p1/p2/f", S_IFREG | 0644, 0) == 0);
    expect(vfs_symlink(NULL, "/tmp/p1/s", "p2/f") == 0);
    expect(vfs_lookup(NULL, "/tmp/../tmp/p1/s", WALK_FOLLOW, &v) == 0);
    expect(vfs_path(v, path, sizeof(path)) == 12);
    expect(strcmp(path, "/tmp/p1/p2/f") == 0);
    expect(vfs_path(v, path, 12) == -ERANGE);
    expect(vfs_path(v, path, 13) == 12);
    expect(vfs_rename(NULL, "/tmp/p1/p2", NULL, "/tmp/p3", true) == 0);
    expect(vfs_path(v, path, sizeof(path)) == 9);
    expect(strcmp(path, "/tmp/p3/f") == 0);
    expect(vfs_unlink(NULL, "/tmp/p3/f") == 0);
    expect(vfs_path(v, path, sizeof(path)) == -ENOENT);
    expect(v->refs == 1 && v->nlink == 0);
    vnode_unref(v);
    expect(vfs_lookup(NULL, "/", 0, &v) == 0);
    expect(vfs_path(v, path, sizeof(path)) == 1 && path[0] == '/');
    vnode_unref(v);
    expect(vfs_unlink(NULL, "/tmp/p1/s") == 0);
    expect(vfs_rmdir(NULL, "/tmp/p1") == 0);
    expect(vfs_rmdir(NULL, "/tmp/p3") == 0);
}

#define WORKERS 4
#define ROUNDS 400

static u32 workers_left;
static struct waitq workers_wait = WAITQ_INIT(workers_wait, "test workers");

static void worker_done(void)
{
    __atomic_sub_fetch(&workers_left, 1, __ATOMIC_SEQ_CST);
    waitq_wake_all(&workers_wait);
}

static void run_workers(void (*fn)(void *), u32 count)
{
    workers_left = count;
    for (u32 i = 0; i < count; i++) {
        int err = kthread_create("fs test", fn, (void *)i, NULL);
        if (err)
            panic("test: no thread: %d", err);
    }
    wait_event(&workers_wait, READ_ONCE(workers_left) == 0,
               WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
}

// All workers use the same few names: each call may find what another worker
// has just done. Only the errors that follow from this are accepted.
static void churn(void *arg)
{
    u32 state = (u32)arg * 7919 + 1;
    for (u32 i = 0; i < ROUNDS; i++) {
        char a[32], b[32];
        struct vnode *v;
        state = state * 1103515245 + 12345;
        format(a, sizeof(a), "/tmp/churn/%u", state >> 16 & 3);
        format(b, sizeof(b), "/tmp/churn/%u/x", state >> 20 & 3);
        int err = 0;
        switch (state >> 24 & 7) {
        case 0:
            err = vfs_mkdir(NULL, a, 0755);
            break;
        case 1:
            err = vfs_rmdir(NULL, a);
            break;
        case 2:
            err = vfs_mknod(NULL, b, S_IFREG | 0644, 0);
            break;
        case 3:
            err = vfs_unlink(NULL, b);
            break;
        case 4:
            err = vfs_rename(NULL, a, NULL, b, true);
            break;
        case 5:
            err = vfs_rename(NULL, b, NULL, a, true);
            break;
        default:
            err = vfs_lookup(NULL, b, 0, &v);
            if (!err)
                vnode_unref(v);
        }
        expect(err == 0 || err == -ENOENT || err == -EEXIST ||
               err == -ENOTEMPTY || err == -EINVAL || err == -EISDIR ||
               err == -ENOTDIR);
    }
    worker_done();
}

// Appends the name of an entry of the directory `path`; false if it is empty.
static bool step_into(char *path, size_t size, struct vnode **out)
{
    static const char *const names[] = { "0", "1", "2", "3", "x" };
    size_t len = strlen(path);
    for (u32 i = 0; i < ARRAY_SIZE(names); i++) {
        format(path + len, size - len, "/%s", names[i]);
        if (vfs_lookup(NULL, path, 0, out) == 0)
            return true;
    }
    path[len] = '\0';
    return false;
}

// Moves may have nested the directories deeply.
static void remove_all(const char *top)
{
    char path[1024];
    strlcpy(path, top, sizeof(path));
    while (strlen(path) >= strlen(top)) {
        struct vnode *v;
        bool dir = true;
        if (step_into(path, sizeof(path), &v)) {
            dir = vnode_is_dir(v);
            vnode_unref(v);
            if (dir)
                continue;
        }
        expect((dir ? vfs_rmdir : vfs_unlink)(NULL, path) == 0);
        *strrchr(path, '/') = '\0';
    }
}

KERNEL_TEST(fs_names_on_all_cpus)
{
    struct vnode *tmp;
    expect(vfs_lookup(NULL, "/tmp", WALK_FOLLOW, &tmp) == 0);
    u32 links = tmp->nlink;
    expect(vfs_mkdir(NULL, "/tmp/churn", 0755) == 0);
    run_workers(churn, WORKERS);
    remove_all("/tmp/churn");
    expect(tmp->nlink == links);
    vnode_unref(tmp);
}

// --- mounts -----------------------------------------------------------------

KERNEL_TEST(fs_unmount_frees_everything)
{
    struct mount *m;
    u64 frames = file_frames();
    expect(vfs_mkdir(NULL, "/tmp/mnt", 0755) == 0);
    expect(mount_by_type("tmpfs", NULL, false, &m) == 0);
    expect(vfs_mount_at("/tmp/mnt", m) == 0);
    expect(strcmp(m->path, "/tmp/mnt") == 0);
    char path[64] = "/tmp/mnt";
    for (u32 i = 0; i < 10; i++) { // deep
        strlcpy(path + strlen(path), "/d", 3);
        expect(vfs_mkdir(NULL, path, 0755) == 0);
    }
    struct file *f = open_file("/tmp/mnt/d/f");
    expect(transfer(f, path, sizeof(path), 0, true) == sizeof(path));
    expect(vfs_unmount("/tmp/mnt") == -EBUSY);
    expect(vfs_detach("/tmp/mnt") == 0);
    expect(vfs_unmount("/tmp/mnt") == -EINVAL);
    char back[64];
    expect(transfer(f, back, sizeof(back), 0, false) == sizeof(back));
    expect(memcmp(back, path, sizeof(path)) == 0);
    file_unref(f);
    expect(mount_by_type("tmpfs", NULL, false, &m) ==
           0); // releases the detached mount
    mount_discard(m);
    expect(file_frames() == frames);
    expect(vfs_rmdir(NULL, "/tmp/mnt") == 0);
}

// --- the initrd -------------------------------------------------------------

struct archive {
    char bytes[4096];
    size_t size;
};

static void add_entry(struct archive *a, const char *name, u32 ino, u32 mode,
                      u32 nlink, const char *data)
{
    size_t len = strlen(data);
    a->size += (size_t)format(
        a->bytes + a->size, sizeof(a->bytes) - a->size,
        "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", ino, mode,
        0, 0, nlink, 1000, (u32)len, 0, 0, 0, 0, (u32)strlen(name) + 1, 0);
    strlcpy(a->bytes + a->size, name, sizeof(a->bytes) - a->size);
    a->size = ALIGN_UP(a->size + strlen(name) + 1, 4u);
    memcpy(a->bytes + a->size, data, len);
    a->size = ALIGN_UP(a->size + len, 4u);
}

static bool file_is(const char *path, const char *text)
{
    char buf[64] = "";
    struct vnode *v;
    if (vfs_lookup(NULL, path, WALK_FOLLOW, &v))
        return false;
    int n = vnode_read(v, 0, buf, sizeof(buf) - 1);
    vnode_unref(v);
    return n == (int)strlen(text) && strcmp(buf, text) == 0;
}

KERNEL_TEST(fs_initrd)
{
    struct archive *a = kzalloc(sizeof(*a));
    struct vnode *v;
    add_entry(a, "tmp/ird", 1, S_IFDIR | 0700, 2, "");
    add_entry(a, "tmp/ird/one", 2, S_IFREG | 0644, 2, "");
    add_entry(a, "tmp/ird/two", 2, S_IFREG | 0644, 2, "linked");
    add_entry(a, "./tmp/ird/not/there/deep", 3, S_IFREG | 0755, 1, "deep");
    add_entry(a, "tmp/ird/sym", 4, S_IFLNK | 0777, 1, "not/there/deep");
    add_entry(a, "TRAILER!!!", 0, 0, 1, "");
    a->size = ALIGN_UP(a->size, 512u);
    add_entry(a, "tmp/ird/one", 9, S_IFREG | 0600, 1, "replaced");
    add_entry(a, "TRAILER!!!", 0, 0, 1, "");
    expect(initrd_unpack("test", (u8 *)a->bytes, a->size, NULL) == 6);
    kfree(a);
    expect(file_is("/tmp/ird/two", "linked"));
    expect(file_is("/tmp/ird/one", "replaced"));
    expect(file_is("/tmp/ird/sym", "deep"));
    expect(vfs_lookup(NULL, "/tmp/ird/two", 0, &v) == 0);
    expect(v->nlink == 1 && v->mtime.sec == 1000);
    vnode_unref(v);
    expect(vfs_lookup(NULL, "/tmp/ird", 0, &v) == 0);
    expect((v->mode & 07777) == 0700);
    vnode_unref(v);
    expect(vfs_unlink(NULL, "/tmp/ird/one") == 0);
    expect(vfs_unlink(NULL, "/tmp/ird/two") == 0);
    expect(vfs_unlink(NULL, "/tmp/ird/sym") == 0);
    expect(vfs_unlink(NULL, "/tmp/ird/not/there/deep") == 0);
    expect(vfs_rmdir(NULL, "/tmp/ird/not/there") == 0);
    expect(vfs_rmdir(NULL, "/tmp/ird/not") == 0);
    expect(vfs_rmdir(NULL, "/tmp/ird") == 0);
}

// --- locks against a model --------------------------------------------------

#define OWNERS 3
#define LOCK_BYTES 24

KERNEL_TEST(fs_locks)
{
    static u8 model[OWNERS][LOCK_BYTES]; // LOCK_NONE, READ or WRITE
    static u32 owners[OWNERS];
    struct file *f = open_file("/tmp/locks");
    u32 refs = f->vnode->refs;
    memset(model, LOCK_NONE, sizeof(model));
    for (u32 round = 0; round < 2000; round++) {
        u32 who = test_random() % OWNERS;
        struct lock_range r = { .type = test_random() % 3, .record = true };
        r.start = test_random() % LOCK_BYTES;
        r.end = r.start + test_random() % (LOCK_BYTES - r.start);
        bool free = true;
        for (u32 o = 0; o < OWNERS; o++) {
            for (u64 i = r.start; i <= r.end && o != who; i++) {
                if (r.type != LOCK_NONE && model[o][i] != LOCK_NONE &&
                    (r.type == LOCK_WRITE || model[o][i] == LOCK_WRITE))
                    free = false;
            }
        }
        struct lock_range test = r;
        locks_test(f->vnode, &owners[who], &test);
        expect(r.type == LOCK_NONE || (test.type == LOCK_NONE) == free);
        int err = locks_set(f->vnode, &owners[who], &r, false);
        expect(err == (free ? 0 : -EAGAIN));
        for (u64 i = r.start; i <= r.end && !err; i++)
            model[who][i] = (u8)r.type;
    }
    for (u32 o = 0; o < OWNERS; o++)
        locks_drop(f->vnode, &owners[o]);
    expect(f->vnode->refs == refs);
    expect(vfs_unlink(NULL, "/tmp/locks") == 0);
    file_unref(f);
}

// --- pipes ------------------------------------------------------------------

#define PIPE_TOTAL 400000u

static struct file *pipe_in, *pipe_out;
static u32 pipe_sum[2];

// Worker 0 reads, the others write; the sums must agree.
static void pipe_worker(void *arg)
{
    u32 state = (u32)arg + 1, moved = 0;
    u8 buf[600];
    while ((u32)arg != 0 && moved < PIPE_TOTAL) {
        u32 n = MIN(state % sizeof(buf) + 1, PIPE_TOTAL - moved);
        u32 sum = 0;
        for (u32 i = 0; i < n; i++) {
            state = state * 1103515245 + 12345;
            buf[i] = (u8)(state >> 24);
            sum += buf[i];
        }
        expect(transfer(pipe_in, buf, n, 0, true) == (int)n);
        __atomic_fetch_add(&pipe_sum[0], sum, __ATOMIC_RELAXED);
        moved += n;
    }
    while ((u32)arg == 0 && moved < PIPE_TOTAL * (WORKERS - 1)) {
        int n = transfer(pipe_out, buf, sizeof(buf), 0, false);
        expect(n > 0);
        for (int i = 0; i < n; i++)
            pipe_sum[1] += buf[i];
        moved += (u32)MAX(n, 1);
    }
    worker_done();
}

KERNEL_TEST(fs_pipe_on_all_cpus)
{
    expect(pipe_create(0, &pipe_out, &pipe_in) == 0);
    pipe_sum[0] = pipe_sum[1] = 0;
    run_workers(pipe_worker, WORKERS);
    expect(pipe_sum[0] == pipe_sum[1]);
    file_unref(pipe_in);
    u8 byte;
    expect(transfer(pipe_out, &byte, 1, 0, false) == 0);
    file_unref(pipe_out);
}
