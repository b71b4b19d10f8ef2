#include "sources.h"

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct sysinfo_sampler *find(const struct sysinfo_sampler *list,
                                          size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    }
    return NULL;
}

static struct sysinfo_sampler *read_sources(size_t *count)
{
    *count = 0;
    return sysinfo_read_records("system.profile.sources",
                                SYSINFO_RECORD_SAMPLER, count);
}

void counting_source(char name[SPROFILE_SOURCE_NAME])
{
    size_t count;
    struct sysinfo_sampler *list = read_sources(&count);

    name[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (list[i].counts && strcmp(list[i].name, SPROFILE_POINT_SOURCE) != 0)
            snprintf(name, SPROFILE_SOURCE_NAME, "%s", list[i].name);
    }
    free(list);
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

// Says which session holds what the usable source `s` needs.
static void describe_owner(char *out, size_t size,
                           const struct sysinfo_sampler *s,
                           const struct sysinfo_sampler *list, size_t count)
{
    size_t sessions = 0;
    struct sysinfo_session *all = sysinfo_read_records(
        "system.profile.sessions", SYSINFO_RECORD_SESSION, &sessions);

    snprintf(out, size,
             s->counts ? "%s: all its counters are in use"
                       : "%s: in use by another session",
             s->name);
    for (size_t i = 0; s->nmi && i < sessions; i++) {
        const struct sysinfo_sampler *other = find(list, count, all[i].source);
        if (!other || other == s || !other->nmi)
            continue;
        int n = snprintf(out, size, "%s: NMIs are already in use by %s for ",
                         s->name, other->name);
        if (all[i].owner == (uint32_t)getpid())
            snprintf(out + n, size - n, "this run");
        else
            snprintf(out + n, size - n, "task %u", all[i].owner);
    }
    free(all);
}

void source_problem(char *out, size_t size, const char *name)
{
    size_t count;
    struct sysinfo_sampler *list = read_sources(&count);
    const struct sysinfo_sampler *s = find(list, count, name);

    if (!list) { // the session is of another machine, from a file
        snprintf(out, size, "%s: it was missing or in use", name);
    } else if (!s) {
        snprintf(out, size, "%s: no such sample source; available: ", name);
        list_names(out, size, list, count);
    } else if (s->usable) {
        describe_owner(out, size, s, list, count);
    } else {
        snprintf(out, size, "%s: %.*s", name, (int)sizeof(s->why), s->why);
    }
    free(list);
}

// Lists the points of the group, or the groups, or the fields of the point.
static void point_problem(char *out, size_t size, const char *event)
{
    static const struct {
        const char *name, *group, *fields;
    } points[] = {
#define U8(name) " " #name
#define U16(name) " " #name
#define U32(name) " " #name
#define U64(name) " " #name
#define POINT(group, name, fields, when) { #group "/" #name, #group, fields },
#include <strobe/points.def>
#undef POINT
#undef U8
#undef U16
#undef U32
#undef U64
    };
    static const char samples[] = "profile/sample";
    size_t count = sizeof(points) / sizeof(points[0]);
    size_t group = strcspn(event, "/"), name = strcspn(event, ":");
    const char *last = "";

    if (name == strlen(samples) && strncmp(event, samples, name) == 0) {
        snprintf(out, size, "@%s: a sample cannot be of a sample", event);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (strlen(points[i].name) == name && event[name] == ':' &&
            strncmp(points[i].name, event, name) == 0) {
            snprintf(out, size, "@%s: no such field; there are:%s", event,
                     points[i].fields);
            return;
        }
    }
    snprintf(out, size, "@%s: no such trace point; there are", event);
    for (int all = 0; all < 2 && *last == '\0'; all++) {
        for (size_t i = 0; i < count; i++) {
            size_t used = strlen(out);
            bool same = strlen(points[i].group) == group &&
                        strncmp(points[i].group, event, group) == 0;
            if (all ? strcmp(points[i].group, last) == 0 : !same)
                continue;
            last = points[i].group;
            snprintf(out + used, size - used, all ? " %s/..." : " %s",
                     all ? points[i].group : points[i].name);
        }
    }
}

static void callers_problem(char *out, size_t size)
{
    size_t count = 0;
    struct sysinfo_callers *c = sysinfo_read_records(
        "system.profile.callers", SYSINFO_RECORD_CALLERS, &count);

    snprintf(out, size, "-g=lbr: %s; use -g=dwarf",
             count == 1 ? c->why : "not on this kernel");
    free(c);
}

void sources_problem(char *out, size_t size, const struct sprofile_options *o,
                     int error)
{
    if (error == ERANGE)
        snprintf(out, size,
                 "-R: %s%sno random distances at this rate, or beside the "
                 "sessions that run; choose another source or rate (profile "
                 "--list), or --fixed, without a statement of the error",
                 o->source, o->source[0] != '\0' ? ": " : "");
    else if (error == EOPNOTSUPP)
        callers_problem(out, size);
    else if (o->source[0] != '\0' && (error == ENODEV || error == EBUSY))
        source_problem(out, size, o->source);
    else if (error == ENOENT && strcmp(o->source, SPROFILE_POINT_SOURCE) == 0)
        point_problem(out, size, o->event);
    else if (error == ENOENT && o->event[0] != '\0')
        snprintf(out, size,
                 "%s: no such event; available: cycles, instructions, "
                 "branches, branch-misses, cache-references, cache-misses, "
                 "more in sysinfo system.profile.events; rNNMM; and with :u or "
                 ":k of one mode; @GROUP/NAME is a trace point",
                 o->event);
    else if (error == EINVAL && (o->event[0] != '\0' || o->period != 0))
        snprintf(out, size,
                 "-e and -c are for a source that counts events, and for "
                 "events that this machine has: profile --list");
    else
        snprintf(out, size, "%s", kbox_problem(error));
}
