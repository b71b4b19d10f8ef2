// Names of frames and programs in the formats of other tools.
#include "export.h"

#include <stdlib.h>
#include <string.h>

void frame_name(char *out, size_t size, const struct export *e, uint32_t row)
{
    const struct view_row *r = &e->view->rows[row];

    if (r->name)
        snprintf(out, size, "%.*s", (int)r->name_size, r->name);
    else if (r->address != 0)
        snprintf(out, size, "0x%x", r->address);
    else
        snprintf(out, size, "[unknown]");
}

bool frame_is_timed(const struct export *e, uint32_t event)
{
    return e->profile->files[event].info.event[0] == '\0';
}

const char *frame_file(const struct export *e, uint32_t row)
{
    return e->profile->samples.images.list[e->view->rows[row].image].path;
}

static uint32_t busiest_image(const struct export *e)
{
    const struct images *images = &e->profile->samples.images;
    uint64_t *period = calloc(images->count, sizeof(*period));
    uint32_t best = IMAGE_NONE;

    if (!period)
        fail(1, "not enough memory for the export");
    for (uint32_t i = 0; i < e->view->count; i++)
        period[e->view->rows[i].image] += e->view->rows[i].self_period;
    for (uint32_t i = IMAGES_FIXED; i < images->count; i++) {
        if (period[i] > 0 && (best == IMAGE_NONE || period[i] > period[best]))
            best = i;
    }
    free(period);
    if (best == IMAGE_NONE)
        fail(1,
             "%s: no samples of a program; use --program '[kernel]' for the "
             "kernel's",
             e->profile->path);
    return best;
}

uint32_t export_image(const struct export *e)
{
    const struct images *images = &e->profile->samples.images;

    if (!e->program)
        return busiest_image(e);
    for (uint32_t i = 0; i < images->count; i++) {
        if (i != IMAGE_UNKNOWN && image_is_called(&images->list[i], e->program))
            return i;
    }
    complain("--program %s: no such program in %s; available:", e->program,
             e->profile->path);
    for (uint32_t i = 0; i < images->count; i++) {
        if (i == IMAGE_UNKNOWN || i == IMAGE_CUT)
            continue;
        fputs("    ", stderr);
        put_printable(stderr, images->list[i].path);
        fputc('\n', stderr);
    }
    exit(1);
}
