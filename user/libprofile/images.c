#include "images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELD_MAX 64u // open descriptors at most

int images_init(struct images *i, image_reader read)
{
    static const char *const fixed[IMAGES_FIXED] = {
        [IMAGE_KERNEL] = "[kernel]",
        [IMAGE_VDSO] = "[vdso]",
        [IMAGE_UNKNOWN] = "[unknown]",
        [IMAGE_CUT] = "[cut]",
    };
    *i = (struct images){ .read = read };
    for (uint32_t n = 0; n < IMAGES_FIXED; n++) {
        images_add(i, fixed[n], NULL, 0);
        if (i->count != n + 1) {
            images_free(i);
            return -1;
        }
    }
    return 0;
}

void images_unload(struct image *m)
{
    free(m->bytes);
    free(m->text);
    free(m->symbol_table);
    free(m->frame_table);
    for (uint32_t s = 0; s < CFI_SECTIONS; s++)
        free(m->unpacked[s]);
}

void images_free(struct images *i)
{
    for (uint32_t n = 0; n < i->count; n++) {
        images_release(i, &i->list[n]);
        images_unload(&i->list[n]);
        free(i->list[n].path);
    }
    free(i->list);
    free(i->rows);
    *i = (struct images){ 0 };
}

// Returns the number of a new image, or IMAGE_UNKNOWN when out of memory.
static uint32_t new_image(struct images *i, const char *path)
{
    if (i->count == i->room) {
        uint32_t room = i->room * 2 + 16;
        void *list = realloc(i->list, room * sizeof(*i->list));
        if (!list)
            return IMAGE_UNKNOWN;
        i->list = list;
        i->room = room;
    }
    struct image *m = &i->list[i->count];
    *m = (struct image){ .path = strdup(path), .held = -1 };
    return m->path != NULL ? i->count++ : IMAGE_UNKNOWN;
}

uint32_t images_add(struct images *i, const char *path, const void *build_id,
                    uint32_t build_id_size)
{
    if (path[0] == '\0' || build_id_size > sizeof(i->list->build_id))
        return IMAGE_UNKNOWN;
    for (uint32_t n = 0; n < i->count; n++) {
        const struct image *m = &i->list[n];
        if (m->build_id_size == build_id_size && strcmp(m->path, path) == 0 &&
            (build_id_size == 0 ||
             memcmp(m->build_id, build_id, build_id_size) == 0))
            return n;
    }
    uint32_t count = i->count, image = new_image(i, path);
    if (i->count > count && build_id_size > 0) {
        memcpy(i->list[image].build_id, build_id, build_id_size);
        i->list[image].build_id_size = build_id_size;
    }
    return image;
}

uint32_t images_add_jit(struct images *i, uint32_t task)
{
    for (uint32_t n = IMAGES_FIXED; n < i->count; n++) {
        if (i->list[n].jit_task == task)
            return n;
    }
    uint32_t count = i->count, image = new_image(i, "[anon]");
    if (i->count > count)
        i->list[image].jit_task = task;
    return image;
}

// --- holding files ----------------------------------------------------------

void images_hold(struct images *i, uint32_t image, uint32_t task)
{
    struct image *m = &i->list[image];
    struct mapping now;
    char path[IMAGES_HELD_PATH];

    if (image < IMAGES_FIXED || !i->open || m->loaded || m->held >= 0 ||
        m->jit_task != 0 || i->held == HELD_MAX)
        return;
    m->held = i->open(task, m->path);
    if (m->held < 0)
        return;
    i->held++;
    mapping_read(&now, images_held_path(m, path));
    if (!mapping_has_id(&now, m->build_id, m->build_id_size))
        images_release(i, m);
    else if (m->build_id_size > 0)
        m->mapping = now;
}

void images_hold_open(struct images *i, uint32_t image, int fd)
{
    struct image *m = &i->list[image];

    if (image < IMAGES_FIXED || m->held >= 0 || m->loaded) {
        close(fd);
        return;
    }
    m->held = fd;
    i->held++;
}

void images_release(struct images *i, struct image *m)
{
    if (m->held < 0)
        return;
    close(m->held);
    m->held = -1;
    i->held--;
}

const char *images_held_path(const struct image *m, char path[IMAGES_HELD_PATH])
{
    if (m->held < 0)
        return m->path;
    snprintf(path, IMAGES_HELD_PATH, "/proc/self/fd/%d", m->held);
    return path;
}

struct row_cache *images_rows(struct images *i)
{
    if (!i->rows)
        i->rows = calloc(1, sizeof(*i->rows));
    return i->rows;
}

const struct symbol *images_symbol(struct images *i, uint32_t image,
                                   uint32_t address)
{
    const struct image *m = images_load(i, image);
    return !m->problem ? symbols_find(&m->symbols, address) : NULL;
}
