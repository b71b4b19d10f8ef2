#include "sources.h"

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct sysinfo_sampler *find(const struct sysinfo_sampler *list,
                                          size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    }
    return NULL;
}

static void list_names(char *out, size_t size,
                       const struct sysinfo_sampler *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(out);
        snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "",
                 list[i].name);
    }
}

void source_problem(char *out, size_t size, const char *name)
{
    size_t count = 0;
    struct sysinfo_sampler *list = sysinfo_read_records(
        "system.profile.sources", SYSINFO_RECORD_SAMPLER, &count);
    const struct sysinfo_sampler *s = find(list, count, name);

    if (list == NULL) { // of another machine, by its file
        snprintf(out, size, "%s: it was not there, or in use", name);
    } else if (s == NULL) {
        snprintf(out, size, "%s: no such sample source; there are ", name);
        list_names(out, size, list, count);
    } else if (s->usable) {
        snprintf(out, size, "%s: it is in use by another session", name);
    } else {
        snprintf(out, size, "%s: %.*s", name, (int)sizeof(s->why), s->why);
    }
    free(list);
}

void sources_problem(char *out, size_t size, const struct sprofile_options *o,
                     int error)
{
    if (o->source[0] != '\0' && (error == ENODEV || error == EBUSY))
        source_problem(out, size, o->source);
    else if (error == EINVAL && (o->event[0] != '\0' || o->period != 0))
        snprintf(out, size,
                 "-e and -c are for a source that counts events, and for "
                 "events that this machine has: profile --list");
    else
        snprintf(out, size, "%s", kbox_problem(error));
}
