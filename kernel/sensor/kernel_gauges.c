// The kernel's gauges: free frames, and the memory of each heap cache.
//
// A cache gets its sensor when /sensors/heap is next looked at after the
// cache's first use: caches are used in all contexts, files are created in one.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sensor/kernel_sensor.h"
#include "lib/string.h"

static u64 free_frames(const struct kernel_sensor *k UNUSED)
{
    return frames_free();
}

static struct kernel_sensor frames_gauge = {
    .path = "mm/free",
    .text = "free frames of 4 KiB",
    .kind = KERNEL_SENSOR_GAUGE,
    .value = free_frames,
};
KERNEL_SENSOR(frames_gauge);

// --- heap caches ------------------------------------------------------------

#define CACHES_MAX 64u
#define STRUCT "struct " // names of caches begin with it, or not

// Under namespace_lock. A cache's name is a constant of the kernel's.
static struct kernel_sensor cache_gauges[CACHES_MAX];
static u32 cache_gauge_count;
static struct vnode *directory; // /sensors/heap: it has sensors, and so stays

struct cache_search {
    const char *name;
    u64 bytes;
};

static void add_bytes(const struct slab_cache *c, void *arg)
{
    struct cache_search *search = arg;
    if (strcmp(c->name, search->name) == 0)
        search->bytes += (u64)c->slabs << c->order << PAGE_SHIFT;
}

static u64 cache_bytes(const struct kernel_sensor *k)
{
    struct cache_search search = { .name = k->data };
    slab_for_each(add_bytes, &search);
    return search.bytes;
}

static const char *file_name(const char *cache)
{
    size_t skip = strlen(STRUCT);
    return strncmp(cache, STRUCT, skip) == 0 ? cache + skip : cache;
}

struct cache_list {
    struct vnode *dir;
    u32 seen;
    bool full; // no more memory, or sensors
};

// Caches are listed in the order of their first use.
static void add_cache(const struct slab_cache *c, void *arg)
{
    struct cache_list *list = arg;
    if (list->seen++ < cache_gauge_count || list->full)
        return;
    if (cache_gauge_count == CACHES_MAX) {
        list->full = true;
        return;
    }
    struct kernel_sensor *k = &cache_gauges[cache_gauge_count];
    *k = (struct kernel_sensor){
        .path = c->name,
        .text = "bytes that the slabs of the cache take",
        .kind = KERNEL_SENSOR_GAUGE,
        .value = cache_bytes,
        .data = c->name,
    };
    // Caches of one name share a sensor. Without memory it is tried again.
    int err = kernel_sensor_add_file(list->dir, file_name(c->name), k);
    if (!err || err == -EEXIST)
        cache_gauge_count++;
    else
        list->full = true;
}

void kernel_gauges_publish(struct vnode *dir)
{
    directory = dir;
    kernel_gauges_refresh(dir);
}

void kernel_gauges_refresh(struct vnode *dir)
{
    struct cache_list list = { .dir = dir };
    mutex_assert_held(&namespace_lock);
    if (dir == directory)
        slab_for_each(add_cache, &list);
}
