// tmpfs: directories. Names are in a hash table, for the walk, and in a list by
// position, for the listing. Positions are never reused, so a listing sees each
// name that stays exactly once, even with concurrent creations and removals.
//
// Everything here runs under namespace_lock.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/tmpfs.h"
#include "kernel/mm/heap.h"
#include "kernel/task/users.h"
#include "lib/string.h"

#define BUCKETS_AT_FIRST 8u

struct tmpfs_entry {
    struct tmpfs_entry *next; // in its bucket
    struct list order;
    u64 position;
    struct tmpfs_node *dir, *node;
    struct payer *payer;
    u32 hash;
    u32 len;
    char name[];
};

static u32 hash_name(const char *name, size_t len)
{
    u32 hash = (u32)len;
    for (size_t i = 0; i < len; i++)
        hash = hash * 31 + (u8)name[i];
    return hash ^ hash >> 15;
}

static bool is_dir(const struct tmpfs_node *n)
{
    return vnode_type(&n->v) == S_IFDIR;
}

static struct tmpfs_entry **bucket(struct tmpfs_directory *d, u32 hash)
{
    return &d->table[hash & (d->buckets - 1)];
}

static struct tmpfs_entry *find(struct tmpfs_directory *d, const char *name,
                                size_t len)
{
    mutex_assert_held(&namespace_lock);
    if (!d->table)
        return NULL;
    u32 hash = hash_name(name, len);
    struct tmpfs_entry *e = *bucket(d, hash);
    while (e && (e->hash != hash || e->len != len ||
                 memcmp(e->name, name, len) != 0))
        e = e->next;
    return e;
}

// Keeps a bucket for each name. Without memory for that, the chains grow
// longer.
static int grow_table(struct tmpfs_directory *d)
{
    mutex_assert_held(&namespace_lock);
    if (d->count < d->buckets)
        return 0;
    u32 buckets = d->table ? d->buckets * 2 : BUCKETS_AT_FIRST;
    struct tmpfs_entry **table =
        kzalloc(buckets * sizeof(struct tmpfs_entry *));
    if (!table)
        return d->table ? 0 : -ENOMEM;
    kfree(d->table);
    d->table = table;
    d->buckets = buckets;
    struct tmpfs_entry *e;
    list_for_each(e, &d->order, order) {
        struct tmpfs_entry **head = bucket(d, e->hash);
        e->next = *head;
        *head = e;
    }
    return 0;
}

// With its part of the table.
static u32 charge_of(u32 len)
{
    return sizeof(struct tmpfs_entry) + len + 2 * sizeof(struct tmpfs_entry *);
}

static void entry_free(struct tmpfs_entry *e)
{
    user_discharge(e->payer, charge_of(e->len));
    kfree(e);
}

// 0, -ENOSPC, -EDQUOT.
static int entry_create(struct tmpfs_node *dir, const char *name, size_t len,
                        struct tmpfs_entry **out)
{
    mutex_assert_held(&namespace_lock);
    assert(len);
    struct payer *payer;
    if (grow_table(&dir->dir))
        return -ENOSPC;
    if (!tmpfs_charge(charge_of((u32)len), &payer))
        return -EDQUOT;
    struct tmpfs_entry *e = kmalloc(sizeof(*e) + len);
    if (!e) {
        user_discharge(payer, charge_of((u32)len));
        return -ENOSPC;
    }
    e->dir = dir;
    e->payer = payer;
    e->hash = hash_name(name, len);
    e->len = (u32)len;
    memcpy(e->name, name, len);
    *out = e;
    return 0;
}

// Updates the times for a change of the directory and of the named node.
static void touch(struct tmpfs_node *dir, struct tmpfs_node *node)
{
    struct timespec_k now = vfs_now();
    spin_lock(&dir->v.lock);
    dir->v.ctime = dir->v.mtime = now;
    spin_unlock(&dir->v.lock);
    spin_lock(&node->v.lock);
    node->v.ctime = now;
    spin_unlock(&node->v.lock);
}

static bool has_name(const struct tmpfs_node *n)
{
    return is_dir(n) ? n->dir.parent != NULL : n->v.nlink > 0;
}

// Inserts the name, with its position, after `after` in the list. It takes over
// a reference to `node`.
static void insert(struct tmpfs_entry *e, struct tmpfs_node *node, u64 position,
                   struct list *after)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_directory *d = &e->dir->dir;
    struct tmpfs_entry **head = bucket(d, e->hash);
    e->node = node;
    e->position = position;
    e->next = *head;
    *head = e;
    list_insert_between(&e->order, after, after->next);
    d->count++;
    node->entry = e;
    if (!has_name(node))
        __atomic_fetch_sub(&node->fs->unnamed, 1, __ATOMIC_RELAXED);
    if (is_dir(node)) {
        node->dir.parent = e->dir;
        ADD_ONCE(e->dir->v.nlink, 1);
    } else {
        ADD_ONCE(node->v.nlink, 1);
    }
}

static void append(struct tmpfs_entry *e, struct tmpfs_node *node)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_directory *d = &e->dir->dir;
    insert(e, node, d->next_position++, d->order.prev);
}

// Removes and frees the name. The caller takes over the reference that it held.
static struct tmpfs_node *remove(struct tmpfs_entry *e)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_node *node = e->node;
    struct tmpfs_entry **link = bucket(&e->dir->dir, e->hash);
    while (*link != e)
        link = &(*link)->next;
    *link = e->next;
    list_remove(&e->order);
    e->dir->dir.count--;
    if (node->entry == e)
        node->entry = NULL;
    if (is_dir(node)) {
        node->dir.parent = NULL;
        ADD_ONCE(e->dir->v.nlink, -1u);
    } else {
        ADD_ONCE(node->v.nlink, -1u);
    }
    if (!has_name(node))
        __atomic_fetch_add(&node->fs->unnamed, 1, __ATOMIC_RELAXED);
    entry_free(e);
    return node;
}

// Removes a name and, if it was the last reference, the node.
static void remove_for_good(struct tmpfs_entry *e)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_node *dir = e->dir, *node = remove(e);
    if (is_dir(node))
        WRITE_ONCE(node->v.nlink, 0);
    touch(dir, node);
    vnode_unref(&node->v);
}

struct tmpfs_node *tmpfs_find(struct vnode *v, const char *name, size_t len)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_directory *d = &tmpfs_node(v)->dir;
    if (len == 2 && name[0] == '.' && name[1] == '.')
        return d->parent;
    struct tmpfs_entry *e = find(d, name, len);
    return e ? e->node : NULL;
}

int tmpfs_lookup(struct vnode *v, const char *name, size_t len,
                 struct vnode **out)
{
    struct tmpfs_node *found = tmpfs_find(v, name, len);
    if (!found)
        return -ENOENT;
    vnode_ref(&found->v);
    *out = &found->v;
    return 0;
}

// Gives a new node its name. Drops the node when that fails.
static int enter(struct tmpfs_node *dir, const char *name, size_t len,
                 struct tmpfs_node *node, struct vnode **out)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_entry *e;
    int err = entry_create(dir, name, len, &e);
    if (err) {
        vnode_unref(&node->v);
        return err;
    }
    append(e, node);
    touch(dir, node);
    vnode_ref(&node->v);
    *out = &node->v;
    return 0;
}

// No names can be added to a removed directory.
static bool is_removed(const struct tmpfs_node *dir)
{
    return dir->v.nlink == 0;
}

int tmpfs_create(struct vnode *v, const char *name, size_t len, u32 mode,
                 u32 rdev, struct vnode **out)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_node *dir = tmpfs_node(v);
    if (is_removed(dir))
        return -ENOENT;
    struct tmpfs_node *node;
    int err = tmpfs_node_create(dir->fs, mode, rdev, &node);
    return err ? err : enter(dir, name, len, node, out);
}

// The copy is charged like the node. 0, -ENOSPC, -EDQUOT.
static int set_target(struct tmpfs_node *node, const char *target)
{
    u32 bytes = (u32)strlen(target) + 1;
    if (!payer_charge(node->payer, bytes))
        return -EDQUOT;
    node->target = kstrdup(target);
    if (!node->target) {
        user_discharge(node->payer, bytes);
        return -ENOSPC;
    }
    node->v.size = bytes - 1;
    return 0;
}

int tmpfs_symlink(struct vnode *v, const char *name, size_t len,
                  const char *target, struct vnode **out)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_node *dir = tmpfs_node(v);
    if (is_removed(dir))
        return -ENOENT;
    struct tmpfs_node *node;
    int err = tmpfs_node_create(dir->fs, S_IFLNK | 0777, 0, &node);
    if (err)
        return err;
    err = set_target(node, target);
    if (err) {
        vnode_unref(&node->v);
        return err;
    }
    return enter(dir, name, len, node, out);
}

int tmpfs_link(struct vnode *v, const char *name, size_t len,
               struct vnode *target)
{
    mutex_assert_held(&namespace_lock);
    assert(vnode_type(target) != S_IFDIR);
    struct tmpfs_node *dir = tmpfs_node(v);
    if (is_removed(dir))
        return -ENOENT;
    struct tmpfs_entry *e;
    int err = entry_create(dir, name, len, &e);
    if (err)
        return err;
    vnode_ref(target);
    append(e, tmpfs_node(target));
    touch(dir, tmpfs_node(target));
    return 0;
}

int tmpfs_unlink(struct vnode *v, const char *name, size_t len,
                 struct vnode *target)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_entry *e = find(&tmpfs_node(v)->dir, name, len);
    if (!e || &e->node->v != target)
        return -ENOENT;
    if (is_dir(e->node) && e->node->dir.count)
        return -ENOTEMPTY;
    remove_for_good(e);
    return 0;
}

void tmpfs_remove_name(struct tmpfs_node *n)
{
    if (n->entry)
        remove_for_good(n->entry);
}

int tmpfs_rename(struct vnode *from, const char *fname, size_t flen,
                 struct vnode *to, const char *tname, size_t tlen,
                 struct vnode *moved, struct vnode *replaced)
{
    mutex_assert_held(&namespace_lock);
    assert(moved != replaced);
    struct tmpfs_node *to_dir = tmpfs_node(to);
    struct tmpfs_entry *old = find(&tmpfs_node(from)->dir, fname, flen);
    if (!old || &old->node->v != moved || is_removed(to_dir))
        return -ENOENT;
    if (replaced && is_dir(tmpfs_node(replaced)) &&
        tmpfs_node(replaced)->dir.count)
        return -ENOTEMPTY;
    struct tmpfs_entry *new;
    int err = entry_create(to_dir, tname, tlen, &new);
    if (err)
        return err;
    if (replaced)
        remove_for_good(find(&to_dir->dir, tname, tlen));
    // A name that stays in its directory keeps its position: a concurrent
    // listing sees it once.
    u64 position = old->position;
    struct list *before = old->order.prev;
    struct tmpfs_node *node = remove(old);
    if (from == to)
        insert(new, node, position, before);
    else
        append(new, node);
    touch(to_dir, node);
    if (from != to)
        touch(tmpfs_node(from), node);
    return 0;
}

int tmpfs_readdir(struct vnode *v, u64 *pos, struct dirent_sink *sink)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_entry *e;
    list_for_each(e, &tmpfs_node(v)->dir.order, order) {
        if (e->position < *pos)
            continue;
        if (!dirent_emit(sink, e->node->v.ino, e->position + 1,
                         vnode_type(&e->node->v), e->name, e->len))
            break;
        *pos = e->position + 1;
    }
    return 0;
}

int tmpfs_locate(struct vnode *v, struct vnode **dir, const char **name,
                 size_t *len)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_entry *e = tmpfs_node(v)->entry;
    if (!e)
        return -ENOENT;
    *dir = &e->dir->v;
    *name = e->name;
    *len = e->len;
    return 0;
}

// The entry after the place `at` in the directory's list, or NULL.
static struct tmpfs_entry *entry_behind(const struct tmpfs_node *dir,
                                        const struct list *at)
{
    return at->next == &dir->dir.order
               ? NULL
               : list_first(at, struct tmpfs_entry, order);
}

// Every name holds one reference to its node.
static bool is_used(const struct tmpfs_node *n)
{
    u32 names = is_dir(n) ? 1 : n->v.nlink;
    return __atomic_load_n(&n->v.refs, __ATOMIC_RELAXED) != names;
}

bool tmpfs_busy(const struct mount *m, u32 ours)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_node *root = tmpfs_node(m->root), *dir = root;
    struct list *at = &root->dir.order;
    if (__atomic_load_n(&root->v.refs, __ATOMIC_RELAXED) != 1 + ours ||
        __atomic_load_n(&root->fs->unnamed, __ATOMIC_RELAXED) != 1)
        return true;
    for (;;) {
        struct tmpfs_entry *e = entry_behind(dir, at);
        if (e) {
            if (is_used(e->node))
                return true;
            dir = is_dir(e->node) ? e->node : dir;
            at = is_dir(e->node) ? &e->node->dir.order : &e->order;
        } else if (dir != root) {
            at = &dir->entry->order; // a directory has one name
            dir = dir->dir.parent;
        } else {
            return false;
        }
    }
}

void tmpfs_clear(struct vnode *root)
{
    mutex_assert_held(&namespace_lock);
    struct tmpfs_node *dir = tmpfs_node(root);
    for (;;) {
        if (list_empty(&dir->dir.order)) {
            if (&dir->v == root) {
                WRITE_ONCE(root->nlink, 0);
                return;
            }
            dir = dir->dir.parent;
            continue;
        }
        struct tmpfs_entry *e =
            list_first(&dir->dir.order, struct tmpfs_entry, order);
        if (is_dir(e->node) && e->node->dir.count)
            dir = e->node;
        else
            remove_for_good(e);
    }
}
