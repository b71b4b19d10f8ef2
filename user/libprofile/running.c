#include "running.h"

#include "mapping.h"

#include "user/libstrobe/sysinfo.h"

#include <stdlib.h>
#include <string.h>

// What the task runs, held. Kernel tasks have no file, and no code of a user's.
static uint32_t image_of(struct samples *s, uint32_t task)
{
    char *path = program_of_task(task), exe[32];
    struct mapping m;
    uint32_t image = IMAGE_KERNEL;

    if (path != NULL) {
        // What runs, even if there is another file at its path by now.
        snprintf(exe, sizeof(exe), "/proc/%u/exe", task);
        mapping_read(&m, exe);
        image = images_add(&s->images, path, m.build_id, m.build_id_size);
        images_hold(&s->images, image, task);
    }
    free(path);
    return image;
}

static void add(struct samples *s, const struct sysinfo_task *task)
{
    struct program p = { .task = task->id, .parent = task->parent };

    p.image = image_of(s, p.task);
    memcpy(p.name, task->name, sizeof(p.name));
    p.name[sizeof(p.name) - 1] = '\0';
    programs_add(&s->programs, &p);
}

void running_hold(struct events *e, uint32_t task)
{
    for (uint32_t i = 0; i < e->count; i++)
        image_of(&e->list[i].samples, task);
}

void running_add(struct events *e, uint32_t task)
{
    size_t count = 0;
    struct sysinfo_task *tasks = sysinfo_read_task("system.tasks", &count);

    if (tasks == NULL)
        sysinfo_fail("system.tasks");
    for (size_t n = 0; n < count; n++) {
        for (uint32_t i = 0; i < e->count; i++) {
            if (task == 0 || tasks[n].id == task)
                add(&e->list[i].samples, &tasks[n]);
        }
    }
    free(tasks);
}
