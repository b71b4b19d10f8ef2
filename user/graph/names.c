// What numbers in a trace mean: read before it begins, and threads again when
// one appears that is not known.
#include "graph.h"

#include "user/libstrobe/sysinfo.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct functions *functions;

static struct known {
    uint32_t thread;
    char text[32]; // NAME:THREAD
} * known;
static size_t known_count;

static struct known *find(uint32_t thread)
{
    for (size_t i = 0; i < known_count; i++) {
        if (known[i].thread == thread)
            return &known[i];
    }
    return NULL;
}

static void set_name(uint32_t thread, const char *name)
{
    struct known *k = find(thread);

    if (!k) {
        k = realloc(known, (known_count + 1) * sizeof(*known));
        if (!k)
            return; // it will be shown by its number
        known = k;
        k = &known[known_count++];
        k->thread = thread;
    }
    snprintf(k->text, sizeof(k->text), "%.16s:%" PRIu32, name, thread);
    printable(k->text);
}

static void read_threads(void)
{
    size_t count = 0;
    struct sysinfo_thread *all = sysinfo_read_thread("system.threads", &count);

    for (size_t i = 0; all && i < count; i++) {
        if (!find(all[i].id))
            set_name(all[i].id, all[i].name);
    }
    free(all);
}

void names_read(void)
{
    functions = kernel_functions();
    read_threads();
}

void names_of_task(const struct sprofile_task *t)
{
    if (t->kind != SPROFILE_T_ENDED)
        set_name(t->kind == SPROFILE_T_NAMED ? t->parent : t->task, t->name);
}

const char *name_of_function(void *arg, uint32_t address)
{
    const struct function *f = functions_find(functions, address);

    (void)arg;
    return f ? f->name : "[unknown]";
}

void name_of_thread(void *arg, uint32_t thread, char out[32])
{
    (void)arg;
    if (!thread) {
        strcpy(out, "[idle]");
        return;
    }
    if (!find(thread))
        read_threads();
    if (!find(thread))
        set_name(thread, "?"); // it has ended: it is not looked for again
    const struct known *k = find(thread);
    if (k)
        strcpy(out, k->text);
    else
        snprintf(out, 32, "?:%" PRIu32, thread);
}
