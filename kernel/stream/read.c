// Reading a stream: whole records, copied from its rings to user memory.
#include "arch/cpu.h"
#include "arch/mmu.h"
#include "kernel/base/errno.h"
#include "kernel/stream/stream_private.h"

bool stream_ended(struct stream *s)
{
    return READ_ONCE(s->ended);
}

bool stream_readable(struct stream *s)
{
    if (stream_ended(s))
        return true;
    if (s->kind->readable)
        return s->kind->readable(s);
    for (u32 i = 0; i <= cpu_count; i++) {
        if (stream_quarter_full(stream_ring(s, i)))
            return true;
    }
    return false;
}

// Bytes of whole records before `head` that fit into `room`.
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

int stream_read_events(struct stream *s, u32 addr, u32 size)
{
    return read_ring(&s->rings.events, ring_head(&s->rings.events), addr, size);
}

// Events precede the samples that were taken after them: the heads of the
// sample rings are read before that of the event ring, and no sample is copied
// before all events are.
int stream_read(struct stream *s, u32 addr, u32 size)
{
    u32 heads[CPU_MAX];
    if (s->kind->read)
        return s->kind->read(s, addr, size);
    for (u32 i = 0; i < cpu_count; i++)
        heads[i] = ring_head(stream_ring(s, i));
    u32 events = ring_head(&s->rings.events);
    int n = read_ring(&s->rings.events, events, addr, size);
    if (n < 0)
        return n;
    u32 done = (u32)n;
    for (u32 i = 0; s->rings.events.tail == events && i < cpu_count; i++) {
        n = read_ring(s->rings.of_cpu[i], heads[i], addr + done, size - done);
        if (n < 0)
            return done ? (int)done : n;
        done += (u32)n;
    }
    return (int)done;
}
