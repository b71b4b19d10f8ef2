// /proc/PID/maps: the areas of an address space; /proc/PID/exe opened: the file
// of its code.
//
// The areas are copied (files referenced) under the address space's lock and
// formatted afterwards, because finding a file's path takes the namespace_lock,
// which must not be taken inside.

#include "kernel/base/errno.h"
#include "kernel/exec/vdso.h"
#include "kernel/mm/aspace.h"
#include "kernel/procfs/procfs.h"
#include "kernel/task/task.h"

#define NAME_COLUMN 73 // column of the file's name, as on Linux
#define PATH_ROOM 512

struct area_copy {
    u32 start, end, prot, flags;
    struct vnode *vnode;
    u64 offset;
    const char *kernel_name; // of the kernel's own pages, or NULL
};

static int copy_area(struct area *a, void *arg)
{
    struct area_copy *c = chain_add(arg);
    if (!c)
        return 0;
    *c = (struct area_copy){ a->start, a->end,    a->prot,          a->flags,
                             a->vnode, a->offset, vdso_area_name(a) };
    if (c->vnode)
        vnode_ref(c->vnode);
    return 0;
}

static void put_area_name(struct chain *t, const struct area_copy *c)
{
    char path[PATH_ROOM];
    if (c->vnode && vfs_path(c->vnode, path, sizeof(path)) > 0)
        chain_printf(t, "%s", path);
    else if (c->vnode)
        chain_printf(t, "(deleted)");
    else if (c->flags & AREA_STACK)
        chain_printf(t, "[stack]");
    else if (c->flags & AREA_HEAP)
        chain_printf(t, "[heap]");
    else if (c->kernel_name)
        chain_printf(t, "%s", c->kernel_name);
}

static void put_area(struct chain *t, const struct area_copy *c)
{
    u32 line = t->count;
    u32 device = 0;
    if (c->vnode && c->vnode->mount)
        device = c->vnode->mount->dev;
    chain_printf(t, "%08x-%08x %c%c%c%c %08llx %02x:%02x %llu", c->start,
                 c->end, c->prot & PROT_R ? 'r' : '-',
                 c->prot & PROT_W ? 'w' : '-', c->prot & PROT_X ? 'x' : '-',
                 c->flags & AREA_SHARED ? 's' : 'p', c->offset, device >> 8,
                 device & 0xff, c->vnode ? c->vnode->ino : 0ull);
    if (c->vnode || (c->flags & (AREA_STACK | AREA_HEAP)) || c->kernel_name) {
        line = t->count - line;
        chain_printf(t, "%*s", (int)(NAME_COLUMN - MIN(line, 72u)), "");
        put_area_name(t, c);
    }
    chain_append(t, "\n", 1);
}

// A task's address space, referenced; NULL: it has none. 0, -ESRCH, -EACCES.
static int aspace_of(const struct proc_node *n, struct aspace **out)
{
    struct task *task;
    int err = proc_inspect_task(n, &task);
    if (err)
        return err;
    *out = task_aspace(task);
    task_unref(task);
    return 0;
}

int proc_make_maps(struct chain *t, void *arg)
{
    struct chain_cursor cur;
    struct chain copies;
    struct aspace *as;
    int err = aspace_of(arg, &as);
    if (err || !as)
        return err == -ESRCH ? 0 : err;
    chain_init(&copies, sizeof(struct area_copy));
    aspace_for_each_area(as, copy_area, &copies);
    aspace_unref(as);
    for (struct area_copy *c = chain_begin(&cur, &copies); c;
         c = chain_next(&cur)) {
        put_area(t, c);
        if (c->vnode)
            vnode_unref(c->vnode);
    }
    err = copies.error;
    chain_free(&copies);
    return err;
}

// The lowest mapped code belongs to the program.
static int find_code(struct area *a, void *arg)
{
    struct vnode **out = arg;
    if (!a->vnode || !(a->prot & PROT_X))
        return 0;
    vnode_ref(a->vnode);
    *out = a->vnode;
    return 1;
}

// The running file, regardless of which file is at its path now.
int proc_follow_exe(struct vnode *v, struct vnode **out)
{
    struct aspace *as;
    int err = aspace_of(proc_node(v), &as);
    *out = NULL;
    if (err == -EACCES)
        return err;
    if (err || !as)
        return -ENOENT;
    aspace_for_each_area(as, find_code, out);
    aspace_unref(as);
    return *out != NULL ? 0 : -ENOENT;
}
