// user/libprofile/stream.c and the sample counts: reads a session's records in
// pieces. A second walk over them must find as many.
// link: user/libprofile/shares.c user/libprofile/mapping.c
// link: user/libprofile/images_read.c user/libprofile/samples.c
// link: user/libprofile/stream.c user/libprofile/chains.c
// link: user/libprofile/images.c user/libprofile/programs.c
// link: user/libprofile/views.c user/libprofile/tree.c
// link: user/libprofile/user_chain.c
// link: user/libprofile/task_times.c
#include "host.h"

#include <string.h>

#include "user/libprofile/samples.h"

struct found {
    u64 samples, tasks, lost;
};

static void *no_file(const char *path UNUSED, size_t *size UNUSED)
{
    return NULL;
}

static void on_sample(void *arg, const struct counted_sample *s)
{
    ((struct found *)arg)->samples++;
    REQUIRE(s->user_depth <= USER_CHAIN_MAX);
}

static void on_task(void *arg, const struct sprofile_task *t)
{
    ((struct found *)arg)->tasks += 1 + 0 * strlen(t->path);
}

static void on_lost(void *arg, u32 cpu UNUSED, u64 count)
{
    ((struct found *)arg)->lost += count;
}

// Counts the whole records, up to the first with an invalid size, which sets
// *ended.
static u64 count_records(const u8 *bytes, size_t size, bool *ended)
{
    u64 count = 0;
    struct sprofile_record head;
    *ended = false;
    for (size_t at = 0; size - at >= sizeof(head); at += head.size, count++) {
        memcpy(&head, bytes + at, sizeof(head));
        *ended = head.size < sizeof(head) || head.size % 8;
        if (*ended || head.size > size - at)
            break;
    }
    return count;
}

// Feeds the bytes in pieces, as DATA_READ does: what was not taken comes again.
static void feed(struct samples *s, const u8 *bytes, size_t size, size_t piece)
{
    for (size_t at = 0; at < size;) {
        size_t n = MIN(piece, size - at);
        u8 *copy = guarded(bytes + at, n);
        size_t taken = samples_add_stream(s, copy, n);
        REQUIRE(taken <= n);
        free(copy);
        if (taken == 0 && n == size - at)
            break;
        at += taken;
        piece = taken ? piece : 2 * piece; // a record longer than the piece
    }
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    static struct samples s;
    struct found found = { 0 };
    if (!size)
        return 0;
    bool ended;
    u64 records = count_records(data + 1, size - 1, &ended);
    // After a record that ends the stream a piece would begin another one.
    size_t piece = data[0] && !ended ? 8u * data[0] : size;
    REQUIRE(samples_init(&s, no_file) == 0);
    s.observer =
        (struct samples_observer){ on_sample, on_task, on_lost, &found };
    feed(&s, data + 1, size - 1, piece);
    REQUIRE(found.samples + found.tasks <= records);
    REQUIRE(s.total + s.uncounted == found.samples && s.lost == found.lost);
    REQUIRE(s.reader.malformed <= records + ended);
    samples_free(&s);
    return 0;
}
