#define _GNU_SOURCE // asprintf
#include "recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define INFO_MS 1000 // a file that is cut off has totals no older than that

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

void recording_begin(struct recording *r, char *const *command,
                     struct profile_session *session,
                     const struct sprofile_options *asked,
                     struct samples *samples)
{
    struct sprofile_info info;
    struct utsname name;
    if (r->path == NULL)
        return;
    r->session = session;
    if (profile_info(session, &info) < 0 || uname(&name) < 0)
        fail(1, "%s: %s", r->path, strerror(errno));
    struct perf_facts facts = {
        .host = name.nodename,
        .release = name.release,
        .machine = name.machine,
        .cpus = sysconf(_SC_NPROCESSORS_ONLN),
        .command = command,
    };
    facts.kernel_id_size = kernel_build_id(facts.kernel_id);
    const char *problem =
        perf_write_begin(&r->writer, r->path, &facts, asked, &info, samples);
    if (problem != NULL)
        fail(1, "-o %s: %s", r->path, problem);
    r->next_info_ms = now_ms() + INFO_MS;
}

void recording_take(struct recording *r, const void *bytes, size_t size)
{
    struct sprofile_info info;
    if (r->path == NULL)
        return;
    perf_write_stream(&r->writer, bytes, size);
    if (now_ms() < r->next_info_ms || profile_info(r->session, &info) < 0)
        return;
    perf_write_info(&r->writer, &info);
    r->next_info_ms = now_ms() + INFO_MS;
}

bool recording_end(struct recording *r, const struct sprofile_info *info)
{
    const char *problem =
        r->path != NULL ? perf_write_end(&r->writer, info) : NULL;
    if (problem != NULL)
        complain("-o %s: %s", r->path, problem);
    return problem == NULL;
}
