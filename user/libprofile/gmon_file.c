#include "gmon_file.h"

#include <stdbool.h>
#include <string.h>

#define MAGIC "gmon"
#define VERSION 1u
#define SPARE_BYTES 12
#define TAG_HISTOGRAM 0
#define TAG_ARC 1
#define DIMENSION_SIZE 15

struct histogram_head {
    uint32_t low, high, bins, rate;
    char dimension[DIMENSION_SIZE], letter;
};

void gmon_put_head(FILE *out)
{
    static const uint8_t spare[SPARE_BYTES];
    uint32_t version = VERSION;

    fwrite(MAGIC, 1, sizeof(MAGIC) - 1, out);
    fwrite(&version, sizeof(version), 1, out);
    fwrite(spare, 1, sizeof(spare), out);
}

// Writes what is in `counts` above `done`, as far as it fits. Returns whether
// more is left.
static bool put_bins(FILE *out, const struct gmon_histogram *h, uint64_t done)
{
    bool more = false;

    for (uint32_t i = 0; i < h->bins; i++) {
        uint64_t left = h->counts[i] > done ? h->counts[i] - done : 0;
        uint16_t bin = left > UINT16_MAX ? UINT16_MAX : (uint16_t)left;
        fwrite(&bin, sizeof(bin), 1, out);
        more |= left > bin;
    }
    return more;
}

void gmon_put_histogram(FILE *out, const struct gmon_histogram *h)
{
    struct histogram_head head = {
        .low = h->low,
        .high = h->low + h->bins * h->bin_bytes,
        .bins = h->bins,
        .rate = h->rate ? h->rate : 1,
        .letter = h->rate ? 's' : ' ',
    };
    uint64_t done = 0;
    bool more;

    strncpy(head.dimension, h->rate ? "seconds" : "samples", DIMENSION_SIZE);
    do {
        fputc(TAG_HISTOGRAM, out);
        fwrite(&head, sizeof(head), 1, out);
        more = put_bins(out, h, done);
        done += UINT16_MAX;
    } while (more);
}

void gmon_put_arc(FILE *out, uint32_t from, uint32_t self, uint64_t count)
{
    while (count) {
        uint32_t part = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
        fputc(TAG_ARC, out);
        fwrite(&from, sizeof(from), 1, out);
        fwrite(&self, sizeof(self), 1, out);
        fwrite(&part, sizeof(part), 1, out);
        count -= part;
    }
}
