#include "perf_repair.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/types.h"
#include "perf_features.h"
#include "perf_format.h"
#include "user/libstrobe/strobe.h"

#define WINDOW (4u * UINT16_MAX) // bytes of the file in memory at a time

// The file, and what its records hold.
struct scan {
    int fd;
    uint64_t size; // of the file
    struct perf_header header;
    uint64_t end; // of the last whole record
    struct perf_repaired *result;
    struct blob features[PERF_FEATURES];
};

static ssize_t read_at(int fd, void *bytes, size_t size, uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = pread(fd, (char *)bytes + done, size - done, offset + done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += n;
    }
    return done;
}

static int write_at(int fd, const void *bytes, size_t size, uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n =
            pwrite(fd, (const char *)bytes + done, size - done, offset + done);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0)
            done += n;
    }
    return 0;
}

// --- whether the file is whole ----------------------------------------------

static bool inside(uint64_t size, struct perf_section section)
{
    return section.offset <= size && section.size <= size - section.offset;
}

static const char nothing[] =
    "it ends within its first record, or its header is corrupt: "
    "nothing to repair";

static const char *read_header(struct scan *s)
{
    struct perf_header *h = &s->header;
    struct stat st;
    if (fstat(s->fd, &st) < 0 || !S_ISREG(st.st_mode))
        return "not a regular file";
    s->size = st.st_size;
    ssize_t n = read_at(s->fd, h, sizeof(*h), 0);
    if (n < 0)
        return strerror(errno);
    if (n < (ssize_t)sizeof(h->magic) ||
        memcmp(h->magic, PERF_MAGIC, sizeof(h->magic)) != 0)
        return "not a perf.data file: it does not begin with " PERF_MAGIC;
    if (n < (ssize_t)sizeof(*h) || h->size < sizeof(*h) ||
        h->data.offset > s->size || h->data.offset < h->size ||
        !inside(h->data.offset, h->attrs))
        return nothing;
    return NULL;
}

static bool has_feature(const struct scan *s, uint32_t i)
{
    return s->features[i].size > 0 && !s->features[i].failed;
}

// No bytes follow the records, and the records hold no features to write there.
static bool needs_no_features(const struct scan *s)
{
    for (uint32_t i = 0; i < PERF_FEATURES; i++) {
        if (has_feature(s, i))
            return false;
    }
    return s->end == s->size;
}

// The sizes in the header fit in the file, with the features of its bitmap.
static bool is_whole(const struct scan *s)
{
    const struct perf_header *h = &s->header;
    struct perf_section section;
    uint64_t at = h->data.offset + h->data.size;
    if (h->data.size == 0 || !inside(s->size, h->data))
        return false;
    bool any = false;
    for (uint32_t bit = 0; bit < 64 * ARRAY_SIZE(h->features); bit++) {
        if (!(h->features[bit / 64] >> bit % 64 & 1))
            continue;
        if (read_at(s->fd, &section, sizeof(section), at) != sizeof(section) ||
            !inside(s->size, section))
            return false;
        at += sizeof(section);
        any = true;
    }
    return any || needs_no_features(s);
}

// --- the scan of the records ------------------------------------------------

static void take_feature(struct scan *s, const struct perf_strobe *r)
{
    uint32_t feature = r->kind - PERF_STROBE_FEATURE;
    if (r->head.size < sizeof(*r) ||
        memcmp(r->magic, PERF_STROBE_MAGIC, sizeof(r->magic)) != 0 ||
        feature >= PERF_FEATURES || feature == PERF_FEATURE_BUILD_ID ||
        r->size > r->head.size - sizeof(*r))
        return;
    s->features[feature].size = 0; // the last one is valid
    blob_add(&s->features[feature], r->bytes, r->size);
}

// Whether the entry is in the list already: each file is listed once. A list is
// a sequence of entries that begin with their size.
static bool is_listed(const struct blob *list, const struct perf_build_id *e)
{
    const struct perf_build_id *old;
    for (size_t at = 0; at < list->size; at += old->head.size) {
        old = (const void *)(list->bytes + at);
        if (old->head.size == e->head.size && memcmp(old, e, e->head.size) == 0)
            return true;
    }
    return false;
}

static void take_build_id(struct scan *s, const struct perf_mmap2 *m)
{
    if (m->head.size < sizeof(*m) || !(m->head.misc & PERF_MISC_MMAP_BUILD_ID))
        return;
    size_t room = m->head.size - sizeof(*m), length = strnlen(m->path, room);
    if (length == room || m->build_id_size > sizeof(m->build_id))
        return;
    if (m->pid == PERF_KERNEL_PID)
        length = MIN(length, strlen(PERF_KERNEL_PATH)); // without the symbol
    struct perf_build_id e = {
        .head = { 0,
                  (m->head.misc & PERF_MISC_CPUMODE) | PERF_MISC_BUILD_ID_SIZE,
                  sizeof(e) + ALIGN_UP(length + 1, 8u) },
        .pid = PERF_KERNEL_PID,
        .build_id_size = m->build_id_size,
    };
    memcpy(e.build_id, m->build_id, m->build_id_size);
    struct blob entry = { 0 };
    blob_add(&entry, &e, sizeof(e));
    blob_add(&entry, m->path, length);
    blob_add(&entry, (char[8]){ 0 }, e.head.size - sizeof(e) - length);
    struct blob *list = &s->features[PERF_FEATURE_BUILD_ID];
    list->failed |= entry.failed;
    if (!entry.failed && !is_listed(list, (const void *)entry.bytes))
        blob_add(list, entry.bytes, entry.size);
    blob_free(&entry);
}

static void take_record(struct scan *s, const struct perf_record *r)
{
    s->result->records++;
    if (r->type == PERF_RECORD_SAMPLE)
        s->result->samples++;
    if (r->type == PERF_RECORD_MMAP2)
        take_build_id(s, (const void *)r);
    if (r->type == PERF_RECORD_STROBE)
        take_feature(s, (const void *)r);
}

// Takes the whole records at the window's beginning. Returns their size.
static size_t take_window(struct scan *s, const char *window, size_t size)
{
    size_t at = 0;
    while (size - at >= sizeof(struct perf_record)) {
        const struct perf_record *r = (const void *)(window + at);
        if (r->size < sizeof(*r) || r->size % 8 != 0 || r->size > size - at)
            break;
        take_record(s, r);
        at += r->size;
    }
    return at;
}

static const char *scan_records(struct scan *s)
{
    uint64_t limit = s->size;
    char *window = malloc(WINDOW);
    if (!window)
        return "not enough memory";
    // In a file that was sealed, features follow the records.
    if (s->header.data.size != 0 && inside(s->size, s->header.data))
        limit = s->header.data.offset + s->header.data.size;
    s->end = s->header.data.offset;
    for (;;) {
        ssize_t n = read_at(s->fd, window, MIN(limit - s->end, WINDOW), s->end);
        size_t taken = n > 0 ? take_window(s, window, n) : 0;
        if (taken == 0)
            break;
        s->end += taken;
    }
    free(window);
    return s->end == s->header.data.offset ? nothing : NULL;
}

// --- writing ----------------------------------------------------------------

// Writes the feature table, followed by the features. A feature for which
// memory did not suffice is left out.
static int write_features(struct scan *s, uint64_t at)
{
    uint64_t table = at, bits = 0;
    for (uint32_t i = 0; i < PERF_FEATURES; i++) {
        if (has_feature(s, i))
            bits |= 1ull << i;
    }
    at += (uint64_t)__builtin_popcountll(bits) * sizeof(struct perf_section);
    for (uint32_t i = 0; i < PERF_FEATURES; i++) {
        struct perf_section section = { at, s->features[i].size };
        if (!(bits >> i & 1))
            continue;
        if (write_at(s->fd, &section, sizeof(section), table) < 0 ||
            write_at(s->fd, s->features[i].bytes, section.size, at) < 0)
            return -1;
        table += sizeof(section);
        at += section.size;
    }
    s->header.features[0] = bits;
    return 0;
}

// After every write the file can be read, or repaired again.
static const char *seal(struct scan *s)
{
    struct perf_header *h = &s->header;
    h->data.size = s->end - h->data.offset;
    memset(h->features, 0, sizeof(h->features));
    if (write_at(s->fd, h, sizeof(*h), 0) < 0 || ftruncate(s->fd, s->end) < 0 ||
        write_features(s, s->end) < 0 || write_at(s->fd, h, sizeof(*h), 0) < 0)
        return strerror(errno);
    return NULL;
}

const char *perf_repair(int fd, struct perf_repaired *r)
{
    struct scan s = { .fd = fd, .result = r };
    *r = (struct perf_repaired){ 0 };
    const char *problem = read_header(&s);
    if (!problem)
        problem = scan_records(&s);
    if (!problem && !is_whole(&s)) {
        r->changed = true;
        r->cut = s.size - s.end;
        problem = seal(&s);
    }
    for (uint32_t i = 0; i < PERF_FEATURES; i++)
        blob_free(&s.features[i]);
    return problem;
}

void perf_repaired_print(FILE *out, const char *path,
                         const struct perf_repaired *r)
{
    put_printable(out, path);
    fprintf(out, ": %s; %" PRIu64 " records, %" PRIu64 " of them samples",
            r->changed ? "repaired" : "was whole", r->records, r->samples);
    if (r->cut > 0)
        fprintf(out, "; %" PRIu64 " bytes at its end were no whole record",
                r->cut);
    fputc('\n', out);
}
