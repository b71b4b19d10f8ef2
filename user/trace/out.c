// A file of `trace record`, written in whole chunks, so that it is of use up to
// where it was cut off.
#include "out.h"

#include "user/libprofile/choose_functions.h"
#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"
#include "user/libstrobe/trace_reading.h"
#include "user/libtrace/points.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KNOWN_MAX 4096u

static bool put(struct trace_out *o, const void *bytes, size_t size)
{
    const char *p = bytes;

    while (size && !o->error) {
        if (trace_reading_cut_off()) // a pipe that nobody reads
            fcntl(o->fd, F_SETFL, O_NONBLOCK);
        ssize_t n = write(o->fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            o->error = n == 0 ? ENOSPC : errno == EAGAIN ? EINTR : errno;
            break;
        }
        p += n;
        size -= (size_t)n;
    }
    return !o->error;
}

static bool put_chunk(struct trace_out *o, uint32_t kind, const void *body,
                      size_t bytes)
{
    struct trace_file_chunk c = { .kind = kind, .bytes = (uint32_t)bytes };

    if (!put(o, &c, sizeof(c)) || !put(o, body, bytes))
        return false;
    o->whole = lseek(o->fd, 0, SEEK_CUR);
    return true;
}

bool trace_out_open(struct trace_out *o, const char *path)
{
    *o = (struct trace_out){ .path = path };
    o->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return o->fd >= 0;
}

static void put_points(struct trace_out *o)
{
    char text[4096] = "";
    size_t n = 0;

    for (uint32_t i = 0; i < TRACE_POINTS; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s",
                              trace_point_fields(i));
    put_chunk(o, TRACE_FILE_POINTS, text, n);
}

static void put_command(struct trace_out *o, char **command)
{
    char text[256] = "";
    size_t n = 0;

    for (; *command && n < sizeof(text); command++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "",
                              *command);
    put_chunk(o, TRACE_FILE_COMMAND, text, strlen(text));
}

static void put_thread(struct trace_out *o, const struct trace_file_thread *t)
{
    for (uint32_t k = 0; k < o->known_count; k++) {
        if (o->known[k].thread == t->thread)
            return;
    }
    if (!o->known || o->known_count == KNOWN_MAX)
        return;
    o->known[o->known_count++] = *t;
    put_chunk(o, TRACE_FILE_THREAD, t, sizeof(*t));
}

// Of all functions that can be traced: callers are named, too.
static void put_functions(struct trace_out *o)
{
    const struct functions *all = kernel_functions();
    char *text = NULL;
    size_t size;
    FILE *lines = open_memstream(&text, &size);

    for (uint32_t i = 0; lines && i < all->count; i++) {
        const struct function *f = &all->list[i];
        fprintf(lines, "%08" PRIx32 " %" PRIu32 " %s %s\n", f->address, f->size,
                f->name, f->file);
    }
    if (lines && fclose(lines) == 0) // else they are shown by address
        put_chunk(o, TRACE_FILE_FUNCTIONS, text, size);
    free(text);
}

// Threads that the file does not name yet.
static void put_threads(struct trace_out *o)
{
    size_t count = 0;
    struct sysinfo_thread *all = sysinfo_read_thread("system.threads", &count);

    for (size_t i = 0; all && i < count; i++) {
        struct trace_file_thread t = { .thread = all[i].id,
                                       .task = all[i].task };
        memcpy(t.name, all[i].name, sizeof(t.name));
        put_thread(o, &t);
    }
    free(all);
}

static void put_counters(struct trace_out *o, const struct trace_options *a)
{
    char text[TRACE_COUNTERS * (TRACE_COUNTER_NAME + 1) + 1];
    int n = snprintf(text, sizeof(text), "%s\n%s\n", a->counters[0],
                     a->counters[1]);

    if (a->counters[0][0])
        put_chunk(o, TRACE_FILE_COUNTERS, text, (size_t)n);
}

void trace_out_head(struct trace_out *o, const struct trace_options *options,
                    uint32_t task, char **command,
                    const struct trace_info *info,
                    const struct trace_out *first, bool has_functions)
{
    struct trace_file_head h = {
        .magic = TRACE_FILE_MAGIC,
        .version = TRACE_FILE_VERSION,
        .bytes = sizeof(h),
        .trace_version = info->version,
        .cpus = info->cpus,
        .points = options->points,
        .task = task,
        .tsc_hz = { (uint32_t)info->tsc_hz, (uint32_t)(info->tsc_hz >> 32) },
        .event_cycles = info->event_cycles,
        .tsc_error_ppm = info->tsc_error_ppm,
    };
    put(o, &h, sizeof(h));
    put_points(o);
    if (command[0])
        put_command(o, command);
    put_counters(o, options);
    if (has_functions)
        put_functions(o);
    o->known = calloc(KNOWN_MAX, sizeof(*o->known)); // NULL: it names none
    for (uint32_t k = 0; first && k < first->known_count; k++)
        put_thread(o, &first->known[k]);
    put_threads(o);
}

void trace_out_blocks(struct trace_out *o, const void *blocks, size_t bytes)
{
    put_threads(o);
    put_chunk(o, TRACE_FILE_BLOCKS, blocks, bytes);
}

void trace_out_flight(struct trace_out *o, uint32_t ms,
                      const struct trace_info *info)
{
    struct trace_file_flight f = {
        .ms = ms,
        .overwritten = { (uint32_t)info->overwritten,
                         (uint32_t)(info->overwritten >> 32) },
        .since = { (uint32_t)info->since, (uint32_t)(info->since >> 32) },
    };
    put_chunk(o, TRACE_FILE_FLIGHT, &f, sizeof(f));
}

void trace_out_sensors(struct trace_out *o, const void *chunks, size_t bytes)
{
    put_chunk(o, TRACE_FILE_SENSORS, chunks, bytes);
}

static void put_end(struct trace_out *o, const struct trace_info *info,
                    uint32_t reason)
{
    struct trace_file_end e = {
        .reason = reason,
        .tasks_lost = info->tasks_lost,
        .recorded = { (uint32_t)info->recorded,
                      (uint32_t)(info->recorded >> 32) },
        .lost = { (uint32_t)info->lost, (uint32_t)(info->lost >> 32) },
        .throttled = { (uint32_t)info->throttled,
                       (uint32_t)(info->throttled >> 32) },
    };
    put_chunk(o, TRACE_FILE_END, &e, sizeof(e));
}

// The last chunk makes room for the end, which says that the file system was
// full. Without room even for that it is a file that was cut off.
static void put_full_end(struct trace_out *o, const struct trace_info *info)
{
    int error = o->error;

    if (ftruncate(o->fd, o->whole) == 0 &&
        lseek(o->fd, o->whole, SEEK_SET) >= 0) {
        o->error = 0;
        put_end(o, info, TRACE_FILE_FULL);
    }
    o->error = error;
}

bool trace_out_close(struct trace_out *o, const struct trace_info *info)
{
    if (!o->error)
        put_end(o, info, TRACE_FILE_ENDED);
    else if (o->whole)
        put_full_end(o, info);
    if (close(o->fd) != 0 && !o->error)
        o->error = errno;
    free(o->known);
    if (!o->error)
        return true;
    complain("%s: %s: the trace has ended there; what precedes that can be "
             "read",
             o->path, strerror(o->error));
    return false;
}
