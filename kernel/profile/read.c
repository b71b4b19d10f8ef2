// Reading a session: whole records from its rings, to the user's memory.
#include "arch/cpu.h"
#include "arch/mmu.h"
#include "kernel/base/errno.h"
#include "kernel/profile/session_private.h"

bool session_ended(struct session *s)
{
    return READ_ONCE(s->ended);
}

static bool quarter_full(const struct ring *r)
{
    return ring_used(r) >= r->size / 4;
}

bool session_readable(struct session *s)
{
    if (session_ended(s) || quarter_full(&s->events))
        return true;
    for (u32 i = 0; i < cpu_count; i++) {
        if (quarter_full(&s->cpu[i].ring))
            return true;
    }
    return false;
}

// How many bytes of whole records before `head` fit.
static u32 whole_records(const struct ring *r, u32 head, u32 room)
{
    u32 there = head - r->tail, n = 0;
    while (n < there) {
        struct sprofile_record record;
        ring_peek(r, n, &record, sizeof(record));
        if (n + record.size > room)
            break;
        n += record.size;
    }
    return n;
}

static int read_ring(struct ring *r, u32 head, u32 addr, u32 room)
{
    u32 n = whole_records(r, head, room);
    u32 at = r->tail & (r->size - 1), first = MIN(n, r->size - at);
    if (copy_to_user(addr, r->bytes + at, first) ||
        copy_to_user(addr + first, r->bytes, n - first))
        return -EFAULT;
    ring_consume(r, n);
    return (int)n;
}

// What was told before a sample is found first: where the samples end is looked
// up before where the events do, and no sample goes ahead of an event.
int session_read(struct session *s, u32 addr, u32 size)
{
    u32 heads[CPU_MAX];
    for (u32 i = 0; i < cpu_count; i++)
        heads[i] = ring_head(&s->cpu[i].ring);
    u32 events = ring_head(&s->events);
    int n = read_ring(&s->events, events, addr, size);
    if (n < 0)
        return n;
    u32 done = (u32)n;
    for (u32 i = 0; s->events.tail == events && i < cpu_count; i++) {
        n = read_ring(&s->cpu[i].ring, heads[i], addr + done, size - done);
        if (n < 0)
            return done ? (int)done : n;
        done += (u32)n;
    }
    return (int)done;
}
