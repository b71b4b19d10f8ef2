// What numbers in a trace mean: read before it begins, and threads again when
// one appears that is not known.
#include "graph.h"

#include "user/libprofile/function_names.h"
#include "user/libstrobe/sysinfo.h"

#include <stdlib.h>
#include <string.h>

static struct known {
    struct known *next;
    uint32_t thread;
    char text[32]; // NAME:THREAD
} * known;

// Puts it in front: most often it is the one that was looked for last.
static struct known *find(uint32_t thread)
{
    for (struct known **at = &known, *k; (k = *at); at = &k->next) {
        if (k->thread != thread)
            continue;
        *at = k->next;
        k->next = known;
        known = k;
        return k;
    }
    return NULL;
}

static void set_name(uint32_t thread, const char *name)
{
    struct known *k = find(thread);

    if (!k) {
        k = calloc(1, sizeof(*k));
        if (!k)
            return; // it will be shown as ?
        k->thread = thread;
        k->next = known;
        known = k;
    }
    size_t length = strnlen(name, 16);
    memcpy(k->text, name, length);
    k->text[length] = ':';
    put_decimal(k->text + length + 1, thread);
    printable(k->text);
}

void names_read(void)
{
    size_t count = 0;
    struct sysinfo_thread *all = sysinfo_read_thread("system.threads", &count);

    for (size_t i = 0; all && i < count; i++) {
        if (!find(all[i].id))
            set_name(all[i].id, all[i].name);
    }
    free(all);
}

void names_of_task(const struct sprofile_task *t)
{
    if (t->kind != SPROFILE_T_ENDED || !find(t->task))
        set_name(t->kind == SPROFILE_T_NAMED ? t->parent : t->task, t->name);
}

void name_is_wanted(void *arg, uint32_t address)
{
    (void)arg;
    function_wanted(address);
}

const char *name_of_thread(uint32_t thread)
{
    if (!thread)
        return "[idle]";
    if (!find(thread))
        names_read();
    if (!find(thread))
        set_name(thread, "?"); // it has ended: it is not looked for again
    const struct known *k = find(thread);
    return k ? k->text : "?";
}
