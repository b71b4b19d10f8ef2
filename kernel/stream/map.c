// Reading a stream in place: the profiler maps the rings read-only, and each
// read reports the spans of them that hold records. Those are consumed when the
// next read begins.
//
// Each ring is mapped twice in a row, so that records which wrap are
// contiguous.
#include "arch/cpu.h"
#include "arch/mmu.h"
#include "kernel/base/errno.h"
#include "kernel/mm/aspace.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/shared.h"
#include "kernel/stream/stream_private.h"
#include "kernel/task/task.h"

static int map_ring(const struct ring *r, u32 *addr)
{
    struct shared_pages *pages =
        shared_pages_of_ring(r->bytes, r->size / PAGE_SIZE);
    if (!pages)
        return -ENOMEM;
    int err =
        aspace_map_to_read(current_task()->aspace, pages, 2 * r->size, addr);
    shared_pages_unref(pages); // the area holds its own reference
    return err;
}

static void unmap_rings(struct stream *s, u32 count)
{
    for (u32 i = 0; i < count; i++)
        aspace_unmap(current_task()->aspace, s->rings.mapped_at[i],
                     2 * stream_ring(s, i)->size);
}

int stream_map(struct stream *s)
{
    s->rings.mapped = false;
    if (s->kind->read)
        return -EINVAL;
    for (u32 i = 0; i <= cpu_count; i++) {
        int err = map_ring(stream_ring(s, i), &s->rings.mapped_at[i]);
        if (err) {
            unmap_rings(s, i);
            return err;
        }
    }
    s->rings.mapped = true;
    return 0;
}

void stream_consume(struct stream *s)
{
    // Cleared before the fill levels are checked: a writer that finds a ring a
    // quarter full after this point wakes the reader.
    WRITE_ONCE(s->rings.wake, false);
    if (!s->rings.mapped)
        return;
    for (u32 i = 0; i <= cpu_count; i++) {
        ring_consume(stream_ring(s, i), s->rings.mapped_bytes[i]);
        s->rings.mapped_bytes[i] = 0;
    }
}

static struct sprofile_span span(struct stream *s, u32 i, u32 head)
{
    const struct ring *r = stream_ring(s, i);
    return (struct sprofile_span){
        .address = s->rings.mapped_at[i] + (r->tail & (r->size - 1)),
        .size = head - r->tail,
    };
}

// Events precede the samples that were taken after them: the heads of the
// sample rings are read before that of the event ring, and its span is stored
// first.
int stream_map_ring(struct stream *s, u32 addr, u32 size)
{
    u32 n = 0, most = (cpu_count + 1) * sizeof(struct sprofile_span);
    if (!s->rings.mapped || size < most)
        return -EINVAL;
    struct sprofile_span *all = kmalloc(2 * most);
    if (!all)
        return -ENOMEM;
    struct sprofile_span *there = all + cpu_count + 1;
    for (u32 i = 0; i <= cpu_count; i++)
        all[i] = span(s, i, ring_head(stream_ring(s, i)));
    for (u32 i = cpu_count; i <= cpu_count; i--) {
        if (all[i].size)
            there[n++] = all[i];
    }
    int err = copy_to_user(addr, there, n * sizeof(there[0])) ? -EFAULT : 0;
    for (u32 i = 0; !err && i <= cpu_count; i++)
        s->rings.mapped_bytes[i] = all[i].size;
    kfree(all);
    return err ? err : (int)(n * sizeof(there[0]));
}
