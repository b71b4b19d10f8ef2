#include "choose_event.h"

#include "user/libstrobe/strobe.h"

uint32_t choose_event(const struct perf_events *e, const char *path,
                      const char *name)
{
    char names[PERF_EVENTS_MAX * SPROFILE_EVENT_NAME];
    uint32_t event = name != NULL ? perf_find_event(e, name) : 0;

    perf_list_events(e, names, sizeof(names));
    if (event == e->count)
        fail(1, "%s: no event %s; available: %s", path, name, names);
    if (!name && e->count > 1)
        complain("%s: using %s of the events (%s); --event NAME selects "
                 "another",
                 path, e->name[0], names);
    return event;
}
