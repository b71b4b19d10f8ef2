#include "remote_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <strobe/kbox.h>

#include "lib/types.h"
#include "user/libprofile/perf_repair.h"

static void put(struct remote_file *f, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;

    while (size > 0 && !f->failed) {
        ssize_t n = pwrite(f->fd, from, size, (off_t)f->at);
        if (n < 0 && errno == EINTR)
            continue;
        f->failed = n <= 0;
        from += n;
        f->at += (uint64_t)n;
        size -= (size_t)n;
    }
}

// --- records that have come -------------------------------------------------

static void note_sample(struct remote_file *f, const uint8_t *begin)
{
    struct perf_sample sample;

    memcpy(&sample, begin, PERF_SAMPLE_PLAIN);
    if (sample.time > f->time)
        f->time = sample.time;
}

static void note_info(struct remote_file *f, const uint8_t *begin,
                      uint64_t size)
{
    struct perf_strobe own;

    memcpy(&own, begin, sizeof(own));
    uint32_t event = own.kind >> PERF_STROBE_EVENT_SHIFT;
    if (memcmp(own.magic, PERF_STROBE_MAGIC, sizeof(own.magic)) == 0 &&
        (own.kind & PERF_STROBE_KIND_MASK) == PERF_STROBE_INFO &&
        event < PERF_EVENTS_MAX)
        f->info[event] = (struct remote_info){ f->whole, size };
}

// A record is complete, or the header.
static void ended(void *arg, uint32_t type, const uint8_t *begin, size_t size)
{
    struct remote_file *f = arg;

    if (type == PERF_RECORD_SAMPLE && size >= PERF_SAMPLE_PLAIN)
        note_sample(f, begin);
    else if (type == PERF_RECORD_STROBE && size >= sizeof(struct perf_strobe))
        note_info(f, begin, size);
    f->whole += size;
    f->stream += size;
}

void remote_file_begin(struct remote_file *f, int fd)
{
    *f = (struct remote_file){ .fd = fd };
    f->records.ended = ended;
    f->records.arg = f;
}

// --- gaps -------------------------------------------------------------------

static void put_lost(struct remote_file *f, uint32_t event, uint64_t count)
{
    struct perf_lost l = {
        .head = { PERF_RECORD_LOST, 0, sizeof(l) },
        .id = event,
        .count = count,
        .trailer = { .time = f->time, .id = event },
    };

    put(f, &l, sizeof(l));
}

// The records up to byte `to` of the channel are lost, but for those that are
// whole; `counted` have ended before it.
static void skip(struct remote_file *f, uint64_t to,
                 const uint64_t counted[REMOTE_COUNTERS], unsigned counters)
{
    uint64_t now[REMOTE_COUNTERS];

    memcpy(now, f->records.counted, sizeof(now));
    f->at = f->whole;
    f->lost_bytes += to - f->stream;
    for (unsigned i = 0; i < counters; i++) {
        uint32_t lost = (uint32_t)counted[i] - (uint32_t)now[i];
        now[i] += lost;
        f->lost[i] += lost;
        if (i > 0 && lost > 0)
            put_lost(f, i, lost);
    }
    records_resume(&f->records, now);
    f->whole = f->at;
    f->stream = f->taken = to;
}

void remote_file_take(struct remote_file *f, const struct remote_piece *p)
{
    const uint8_t *bytes = p->bytes;
    size_t size = p->size;

    if (f->records.corrupt || p->offset < f->taken)
        return;
    if (p->offset > f->taken) {
        // Without the header nothing can be read; pieces without a beginning
        // of a record belong to the gap.
        if (!f->records.headed || p->first == REMOTE_NONE)
            return;
        skip(f, p->offset + p->first, p->counted, p->counters);
        bytes += p->first;
        size -= p->first;
    }
    put(f, bytes, size);
    f->taken += size;
    records_read(&f->records, bytes, size, NULL);
}

// --- the end ----------------------------------------------------------------

static void put_strobe(struct remote_file *f, uint32_t kind, const void *bytes,
                       size_t size)
{
    struct perf_strobe own = {
        .head = { PERF_RECORD_STROBE, 0,
                  (uint16_t)(sizeof(own) + ALIGN_UP(size, 8u)) },
        .magic = PERF_STROBE_MAGIC,
        .kind = kind,
        .size = (uint32_t)size,
    };
    static const uint8_t padding[8];

    put(f, &own, sizeof(own));
    put(f, bytes, size);
    put(f, padding, -size % sizeof(padding));
}

// Repeats the last INFO of an event, with what was lost on the way.
static void put_info(struct remote_file *f, uint32_t event)
{
    uint8_t record[UINT16_MAX];
    const struct remote_info *i = &f->info[event];
    struct perf_strobe own;
    struct sprofile_info info = { 0 };

    if (f->lost[event + 1] == 0 || i->size == 0 ||
        pread(f->fd, record, i->size, (off_t)i->at) != (ssize_t)i->size)
        return;
    memcpy(&own, record, sizeof(own));
    if (own.size > i->size - sizeof(own))
        return;
    memcpy(&info, record + sizeof(own), MIN(own.size, sizeof(info)));
    info.lost += f->lost[event + 1];
    put_strobe(f, own.kind, &info, MIN(own.size, sizeof(info)));
}

static void put_remote(struct remote_file *f, const struct remote_end *end,
                       const struct remote_client *c)
{
    struct perf_remote r = {
        .datagrams = c->come + c->lost,
        .lost = c->lost,
        .lost_bytes = f->lost_bytes,
        .lost_records = f->lost[0],
    };

    for (unsigned i = 1; i < REMOTE_COUNTERS; i++)
        r.lost_samples += f->lost[i];
    if (end) {
        r.ended = 1;
        r.resent = end->resent;
        r.raw_bytes = end->raw_bytes;
        r.sent_bytes = end->sent_bytes;
        r.program_ns = end->program_ns;
        r.net_ns = end->net_ns;
        r.elapsed_ns = end->elapsed_ns;
    }
    put_strobe(f, PERF_STROBE_REMOTE, &r, sizeof(r));
}

const char *remote_file_end(struct remote_file *f, const struct remote_end *end,
                            const struct remote_client *c)
{
    struct perf_repaired repaired;

    if (f->records.corrupt)
        return "these are no records of sprofile";
    if (!f->records.headed)
        return "nothing was recorded";
    if (end && end->size[REMOTE_FILE] > f->taken)
        skip(f, end->size[REMOTE_FILE], end->counted, REMOTE_COUNTERS);
    f->at = f->whole;
    for (uint32_t i = 0; i < PERF_EVENTS_MAX; i++)
        put_info(f, i);
    put_remote(f, end, c);
    if (f->failed || ftruncate(f->fd, (off_t)f->at) < 0)
        return "some of it could not be written: is the disk full?";
    return perf_repair(f->fd, &repaired);
}
