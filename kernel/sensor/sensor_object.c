// Sensors: their list, quotas, memory and end. See sensor.h.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/sensor/kernel_sensor.h"
#include "kernel/sensor/sensor.h"
#include "kernel/task/task.h"
#include "kernel/task/users.h"
#include "lib/string.h"

SLAB_CACHE(sensor_cache, struct sensor);

static struct mutex sensors_lock = MUTEX_INIT(sensors_lock, "sensors");
static struct list sensors = LIST_INIT(sensors); // in the order of their ids

static void add(struct sensor *s)
{
    static u32 last_id;
    mutex_assert_held(&sensors_lock);
    s->id = ++last_id;
    list_push_back(&sensors, &s->node);
}

int sensor_create(struct vnode *v, struct task *t, struct kernel_sensor *k)
{
    struct sensor *s = slab_alloc(&sensor_cache);
    int err = 0;
    if (!s)
        return -ENOMEM;
    *s = (struct sensor){ .vnode = v, .kernel = k };
    mutex_lock(&sensors_lock);
    if (t && t->sensors >= SENSOR_TASK_COUNT_MAX) {
        err = -EDQUOT;
    } else {
        if (t) {
            task_ref(t);
            ADD_ONCE(t->sensors, 1);
            s->owner = t;
            s->owner_id = t->id;
        }
        add(s);
    }
    mutex_unlock(&sensors_lock);
    if (err)
        slab_free(&sensor_cache, s);
    else
        v->data = s;
    return err;
}

// --- the end ----------------------------------------------------------------

// The task no longer pays for the sensor. Its reference is to be dropped.
static struct task *disown(struct sensor *s)
{
    mutex_assert_held(&sensors_lock);
    struct task *t = s->owner;
    if (!t)
        return NULL;
    assert(t->sensors && t->sensor_bytes >= s->bytes);
    ADD_ONCE(t->sensors, -1);
    t->sensor_bytes -= s->bytes;
    WRITE_ONCE(s->owner, NULL);
    return t;
}

void sensor_free(struct sensor *s)
{
    assert(!s->vnode->refs && !s->named);
    mutex_lock(&sensors_lock);
    struct task *t = disown(s);
    list_remove(&s->node);
    mutex_unlock(&sensors_lock);
    if (t)
        task_unref(t);
    if (s->bytes)
        user_discharge(s->payer, s->bytes);
    if (s->memory)
        vmap_free(s->memory, s->bytes / PAGE_SIZE);
    slab_free(&sensor_cache, s);
}

// A sensor of the task that is marked as closed, with a reference to its vnode
// if that is still used; else *gone.
static struct sensor *close_one(struct task *t, bool *gone)
{
    struct sensor *s, *found = NULL;
    mutex_lock(&sensors_lock);
    list_for_each(s, &sensors, node) {
        if (s->owner != t)
            continue;
        found = s;
        disown(s);
        if (s->header)
            sensor_header_close(s->header);
        *gone = !sensor_ref_if_used(s->vnode);
        break;
    }
    mutex_unlock(&sensors_lock);
    return found;
}

bool sensor_closed(const struct sensor *s)
{
    if (READ_ONCE(s->traced))
        return READ_ONCE(s->ended);
    return !s->kernel && READ_ONCE(s->bytes) && !READ_ONCE(s->owner);
}

// The oldest closed sensor with a name and without readers, with a reference to
// its vnode, if there are too many.
static struct sensor *oldest_kept(void)
{
    struct sensor *s, *oldest = NULL;
    u32 kept = 0;
    mutex_lock(&sensors_lock);
    list_for_each(s, &sensors, node) {
        if (!sensor_closed(s) || !READ_ONCE(s->named) ||
            __atomic_load_n(&s->readers, __ATOMIC_RELAXED))
            continue;
        if (!oldest)
            oldest = s;
        kept++;
    }
    if (kept <= SENSORS_KEPT_MAX || !sensor_ref_if_used(oldest->vnode))
        oldest = NULL;
    mutex_unlock(&sensors_lock);
    return oldest;
}

static void forget_oldest(void)
{
    struct sensor *s = oldest_kept();
    if (!s)
        return;
    struct vnode *v = s->vnode;
    sensor_set_named(s, false);
    vnode_unref(v);
}

static void close_all(struct task *t)
{
    struct sensor *s;
    bool gone;
    if (!READ_ONCE(t->sensors)) // only its own threads add some
        return;
    while ((s = close_one(t, &gone))) {
        if (!gone)
            vnode_unref(s->vnode);
        task_unref(t);
        forget_oldest();
    }
}

static const struct task_observer sensor_observer = { .execed = close_all,
                                                      .released = close_all };
TASK_OBSERVER(sensor_observer);

// --- data -------------------------------------------------------------------

static int charge_task(struct sensor *s, u32 bytes)
{
    int err = -EDQUOT;
    mutex_lock(&sensors_lock);
    struct task *t = s->owner;
    if (!t)
        err = -EPERM; // closed
    else if (bytes <= SENSOR_TASK_BYTES_MAX - t->sensor_bytes &&
             user_charge(READ_ONCE(t->uid), bytes, &s->payer))
        err = 0;
    if (!err) {
        t->sensor_bytes += bytes;
        WRITE_ONCE(s->bytes, bytes);
    }
    mutex_unlock(&sensors_lock);
    return err;
}

static void discharge_task(struct sensor *s)
{
    u32 bytes = s->bytes;
    mutex_lock(&sensors_lock);
    if (s->owner)
        s->owner->sensor_bytes -= bytes;
    WRITE_ONCE(s->bytes, 0);
    mutex_unlock(&sensors_lock);
    user_discharge(s->payer, bytes);
    s->payer = NULL;
}

static int add_page(struct tmpfs_node *n, u32 index)
{
    struct frame *f = tmpfs_may_grow()
                          ? frame_alloc(0, FRAME_LOW | FRAME_ZERO, FRAME_BUFFER)
                          : NULL;
    return f ? tmpfs_add_page(n, index, f) : -ENOMEM;
}

static int add_pages(struct sensor *s, u32 pages)
{
    struct tmpfs_node *n = tmpfs_node(s->vnode);
    int err = 0;
    for (u32 i = 0; i < pages && !err; i++)
        err = signal_fatal() ? -EINTR : add_page(n, i);
    if (err)
        tmpfs_drop_pages(n, 0);
    return err;
}

int sensor_open_for(struct sensor *s, const struct sensor_layout *layout,
                    u32 data_bytes, const char *text)
{
    struct tmpfs_node *n = tmpfs_node(s->vnode);
    mutex_assert_held(&n->write_lock);
    u32 pages = 1 + DIV_ROUND_UP(data_bytes, PAGE_SIZE);
    if (s->bytes)
        return -EBUSY;
    int err = charge_task(s, pages * PAGE_SIZE);
    if (err)
        return err;
    err = add_pages(s, pages);
    if (err) {
        discharge_task(s);
        return err;
    }
    spin_lock(&n->v.lock);
    struct sensor_header *h = frame_va(pagetree_get(&n->file, 0));
    sensor_header_fill(h, layout, text, s->owner_id);
    __atomic_store_n(&s->header, h, __ATOMIC_RELEASE);
    WRITE_ONCE(s->type, layout->type);
    n->v.size = (u64)pages * PAGE_SIZE;
    spin_unlock(&n->v.lock);
    return 0;
}

void sensor_attach(struct sensor *s, void *memory, u32 pages)
{
    struct vnode *v = s->vnode;
    assert(s->kernel || s->traced);
    spin_lock(&v->lock);
    __atomic_store_n(&s->header, memory, __ATOMIC_RELEASE);
    v->size = (u64)pages * PAGE_SIZE;
    v->pages = pages;
    spin_unlock(&v->lock);
    WRITE_ONCE(s->bytes, pages * PAGE_SIZE);
}

struct frame *sensor_frame(const struct sensor *s, u32 index)
{
    struct tmpfs_node *n = tmpfs_node(s->vnode);
    spin_assert_held(&n->v.lock);
    if (!s->kernel && !s->traced)
        return pagetree_get(&n->file, index);
    return index < n->v.pages
               ? frame_of_vmap((const u8 *)s->header + index * PAGE_SIZE)
               : NULL;
}

// --- reports ----------------------------------------------------------------

// The first sensor from `id` on whose vnode is in use, with a reference.
static struct sensor *next_from(u32 id)
{
    struct sensor *s, *found = NULL;
    mutex_lock(&sensors_lock);
    list_for_each(s, &sensors, node) {
        if (s->id >= id && sensor_ref_if_used(s->vnode)) {
            found = s;
            break;
        }
    }
    mutex_unlock(&sensors_lock);
    return found;
}

void sensors_each(void (*fn)(struct sensor *s, void *arg), void *arg)
{
    struct sensor *s;
    for (u32 id = 0; (s = next_from(id));) {
        id = s->id + 1;
        fn(s, arg);
        vnode_unref(s->vnode);
    }
}

const char *sensor_state(const struct sensor *s)
{
    if (s->kernel)
        return kernel_sensor_opening(s->kernel) ? "open" : "off";
    if (!READ_ONCE(s->bytes))
        return "new";
    return sensor_closed(s) ? "closed" : "open";
}
