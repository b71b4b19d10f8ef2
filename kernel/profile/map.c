// Reading a session in place: the profiler maps the rings, and is told where
// there are records in them. They are consumed when it asks for more.
//
// Each ring lies there twice, one after the other, so that records which wrap
// are in one piece. The profiler can only read it.
#include "arch/cpu.h"
#include "arch/mmu.h"
#include "kernel/base/errno.h"
#include "kernel/mm/area.h"
#include "kernel/profile/session_private.h"
#include "kernel/task/task.h"

struct ring *session_ring(struct session *s, u32 i)
{
    return i < cpu_count ? &s->cpu[i].ring : &s->events;
}

static int map_ring(const struct ring *r, u32 *addr)
{
    struct shared_pages *pages =
        shared_pages_of_ring(r->bytes, r->size / PAGE_SIZE);
    if (!pages)
        return -ENOMEM;
    int err =
        aspace_map_to_read(current_task()->aspace, pages, 2 * r->size, addr);
    shared_pages_unref(pages); // the area has its own
    return err;
}

static void unmap_rings(struct session *s, u32 count)
{
    for (u32 i = 0; i < count; i++)
        aspace_unmap(current_task()->aspace, s->mapped_at[i],
                     2 * session_ring(s, i)->size);
}

int session_map(struct session *s)
{
    s->mapped = false;
    for (u32 i = 0; i <= cpu_count; i++) {
        int err = map_ring(session_ring(s, i), &s->mapped_at[i]);
        if (err) {
            unmap_rings(s, i);
            return err;
        }
    }
    s->mapped = true;
    return 0;
}

void session_take_back(struct session *s)
{
    for (u32 i = 0; i <= cpu_count; i++) {
        ring_consume(session_ring(s, i), s->lent[i]);
        s->lent[i] = 0;
    }
}

static struct sprofile_span span(struct session *s, u32 i, u32 head)
{
    const struct ring *r = session_ring(s, i);
    return (struct sprofile_span){
        .address = s->mapped_at[i] + (r->tail & (r->size - 1)),
        .size = head - r->tail,
    };
}

// What was told before a sample goes first: where the samples end is looked up
// before where the events do.
int session_lend(struct session *s, u32 addr, u32 size)
{
    struct sprofile_span all[CPU_MAX + 1], there[CPU_MAX + 1];
    u32 n = 0;
    if (!s->mapped || size < (cpu_count + 1) * sizeof(there[0]))
        return -EINVAL;
    for (u32 i = 0; i <= cpu_count; i++)
        all[i] = span(s, i, ring_head(session_ring(s, i)));
    for (u32 i = cpu_count; i <= cpu_count; i--) {
        if (all[i].size)
            there[n++] = all[i];
    }
    if (copy_to_user(addr, there, n * sizeof(there[0])))
        return -EFAULT;
    for (u32 i = 0; i <= cpu_count; i++)
        s->lent[i] = all[i].size;
    return (int)(n * sizeof(there[0]));
}
