#include "running_tasks.h"

#include "mapping.h"

#include "user/libstrobe/sysinfo.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Returns the image of the task's program, and holds its file. A kernel task
// has no file and no user code: its image is the kernel.
static uint32_t image_of(struct samples *s, uint32_t task)
{
    char *path = program_of_task(task), exe[32];
    struct mapping m;
    uint32_t image = IMAGE_KERNEL;

    if (path) {
        // The file that runs, even if another file is now at its path.
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
    struct program p = { .task = task->id,
                         .parent = task->parent,
                         .load_bias = task->load_bias };

    p.image = image_of(s, p.task);
    memcpy(p.name, task->name, sizeof(p.name));
    p.name[sizeof(p.name) - 1] = '\0';
    programs_add(&s->programs, &p);
}

static void hold(struct samples *s, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char link[32], real[PATH_MAX];
    struct mapping m;

    if (fd < 0)
        return;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, real, sizeof(real) - 1);
    if (size <= 0 || !mapping_read(&m, link)) {
        close(fd);
        return;
    }
    real[size] = '\0';
    images_hold_open(&s->images,
                     images_add(&s->images, real, m.build_id, m.build_id_size),
                     fd);
}

void running_hold(struct events *e, const char *path)
{
    for (uint32_t i = 0; i < e->count; i++)
        hold(&e->list[i].samples, path);
}

// Names of threads but the first ones.
static void add_threads(struct events *e, uint32_t task)
{
    size_t count = 0;
    struct sysinfo_thread *all = sysinfo_read_thread("system.threads", &count);

    for (size_t n = 0; all && n < count; n++) {
        struct program p = { .task = all[n].id, .parent = all[n].task };
        if (p.task == p.parent || (task != 0 && p.parent != task))
            continue;
        memcpy(p.name, all[n].name, sizeof(p.name));
        p.name[sizeof(p.name) - 1] = '\0';
        for (uint32_t i = 0; i < e->count; i++)
            programs_add(&e->list[i].samples.threads, &p);
    }
    free(all);
}

void running_add(struct events *e, uint32_t task)
{
    size_t count = 0;
    struct sysinfo_task *tasks = sysinfo_read_task("system.tasks", &count);

    if (!tasks)
        sysinfo_fail("system.tasks");
    for (size_t n = 0; n < count; n++) {
        for (uint32_t i = 0; i < e->count; i++) {
            if (task == 0 || tasks[n].id == task)
                add(&e->list[i].samples, &tasks[n]);
        }
    }
    free(tasks);
    add_threads(e, task);
}
