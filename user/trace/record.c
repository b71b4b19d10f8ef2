// trace record: begins a trace, copies what it gives into a file, and ends it.
//
// The file is written in whole chunks in the order of what happened, so it is
// of use up to where it was cut off. The kernel ends the trace if this program
// is killed.
#include "trace.h"

#include "user/libstrobe/child.h"
#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <strobe/trace_file.h>

#define BUFFER_BYTES (1024 * 1024)
#define KNOWN_MAX 4096u

static volatile sig_atomic_t over;

static void on_signal(int signal)
{
    (void)signal;
    over = 1;
}

// A signal that comes before a wait shortens the wait, not only one that comes
// during it: reads return after half a second in any case.
static void catch (int signal)
{
    struct sigaction action = { .sa_handler = on_signal,
                                .sa_flags = SA_NOCLDSTOP };

    sigaction(signal, &action, NULL);
}

// --- the file ---------------------------------------------------------------

static struct {
    int fd;
    int error;   // of the first write that failed; 0: none
    off_t whole; // where the last whole chunk ends
} file;

static bool put(const void *bytes, size_t size)
{
    const char *p = bytes;

    while (size && !file.error) {
        ssize_t n = write(file.fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            file.error = n < 0 ? errno : ENOSPC;
            break;
        }
        p += n;
        size -= (size_t)n;
    }
    return !file.error;
}

static bool put_chunk(uint32_t kind, const void *body, size_t bytes)
{
    struct trace_file_chunk c = { .kind = kind, .bytes = (uint32_t)bytes };

    if (!put(&c, sizeof(c)) || !put(body, bytes))
        return false;
    file.whole = lseek(file.fd, 0, SEEK_CUR);
    return true;
}

static void put_points(void)
{
    char text[4096] = "";
    size_t n = 0;

    for (uint32_t i = 0; i < TRACE_POINTS; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s",
                              trace_point_fields(i));
    put_chunk(TRACE_FILE_POINTS, text, n);
}

static void put_command(char **command)
{
    char text[256] = "";
    size_t n = 0;

    for (; *command && n < sizeof(text); command++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "",
                              *command);
    put_chunk(TRACE_FILE_COMMAND, text, strlen(text));
}

// Threads that the file does not name yet.
static void put_threads(void)
{
    static uint32_t known[KNOWN_MAX], known_count;
    size_t count = 0;
    struct sysinfo_thread *all = sysinfo_read_thread("system.threads", &count);

    for (size_t i = 0; all && i < count; i++) {
        uint32_t k = 0;
        while (k < known_count && known[k] != all[i].id)
            k++;
        if (k < known_count || known_count == KNOWN_MAX)
            continue;
        known[known_count++] = all[i].id;
        struct trace_file_thread t = { .thread = all[i].id,
                                       .task = all[i].task };
        memcpy(t.name, all[i].name, sizeof(t.name));
        put_chunk(TRACE_FILE_THREAD, &t, sizeof(t));
    }
    free(all);
}

static void put_head(const struct settings *s, uint32_t task,
                     const struct trace_info *info)
{
    struct trace_file_head h = {
        .magic = TRACE_FILE_MAGIC,
        .version = TRACE_FILE_VERSION,
        .bytes = sizeof(h),
        .trace_version = info->version,
        .cpus = info->cpus,
        .points = s->options.points,
        .task = task,
        .tsc_hz = { (uint32_t)info->tsc_hz, (uint32_t)(info->tsc_hz >> 32) },
        .event_cycles = info->event_cycles,
    };
    put(&h, sizeof(h));
    put_points();
    if (s->command[0])
        put_command(s->command);
    put_threads();
}

static void put_end(const struct trace_info *info, uint32_t reason)
{
    struct trace_file_end e = {
        .reason = reason,
        .tasks_lost = info->tasks_lost,
        .recorded = { (uint32_t)info->recorded,
                      (uint32_t)(info->recorded >> 32) },
        .lost = { (uint32_t)info->lost, (uint32_t)(info->lost >> 32) },
    };
    put_chunk(TRACE_FILE_END, &e, sizeof(e));
}

// --- the trace --------------------------------------------------------------

static _Noreturn void cannot_begin(const struct trace_options *o)
{
    int error = errno;

    if (error == ESRCH)
        fail(1, "-t %u: no such task, or it has ended (see ps)", o->task);
    if (error == EUSERS)
        fail(1, "there are as many traces as there can be");
    if (error == ENOMEM)
        fail(1, "not enough memory for the trace: -b with a lower number needs "
                "less");
    fail(1, "%s", kbox_problem(error));
}

// The answer to one read: its bytes; 0: there is nothing now; -1: no more.
static int read_once(struct profile_session *session, char *buffer)
{
    static bool paused;
    int n;

    if (profile_trace_request(session, buffer, BUFFER_BYTES) < 0)
        return -1;
    for (;;) {
        if (over && !paused) {
            paused = true;
            profile_pause(session, true);
        }
        n = profile_trace_answer(session, -1);
        if (n >= 0 || errno != EINTR)
            break;
    }
    if (n < 0) {
        if (errno != ESHUTDOWN)
            complain("reading the trace: %s", strerror(errno));
        return -1;
    }
    return n || !paused ? n : -1;
}

static void copy_all(struct profile_session *session)
{
    char *buffer = malloc(BUFFER_BYTES);
    int n;

    if (!buffer)
        fail(1, "not enough memory");
    // A full file system ends the trace: nobody would see more of it.
    while (!file.error && (n = read_once(session, buffer)) >= 0) {
        if (n == 0)
            continue;
        put_threads();
        put_chunk(TRACE_FILE_BLOCKS, buffer, (size_t)n);
    }
    free(buffer);
}

// The last chunk makes room for the end, which says that the file system was
// full. Without room even for that it is a file that was cut off.
static void put_full_end(const struct trace_info *info)
{
    int error = file.error;

    if (ftruncate(file.fd, file.whole) == 0 &&
        lseek(file.fd, file.whole, SEEK_SET) >= 0) {
        file.error = 0;
        put_end(info, TRACE_FILE_FULL);
    }
    file.error = error;
}

// Whether the file is whole.
static bool finish(const struct settings *s, const struct trace_info *info)
{
    if (!file.error)
        put_end(info, TRACE_FILE_ENDED);
    else if (file.whole)
        put_full_end(info);
    if (close(file.fd) != 0 && !file.error)
        file.error = errno;
    if (!file.error)
        return true;
    complain("%s: %s: the trace has ended there; what precedes that can be "
             "read",
             s->output, strerror(file.error));
    return false;
}

static void begin(const struct settings *s, struct profile_session *session,
                  uint32_t task)
{
    struct trace_options o = s->options;
    struct trace_info info;

    o.task = task;
    if (profile_trace_begin(session, &o) < 0)
        cannot_begin(&o);
    if (profile_trace_info(session, &info) < 0)
        fail(1, "the trace: %s", strerror(errno));
    put_head(s, task, &info);
}

static void print_counts(const struct settings *s,
                         const struct trace_info *info)
{
    fprintf(stderr, "trace: %" PRIu64 " records", info->recorded);
    if (info->lost)
        fprintf(stderr,
                ", and %" PRIu64 " LOST for want of room (-b, fewer -e)",
                info->lost);
    fprintf(stderr, ", in %s\n", s->output);
}

int record(const struct settings *s)
{
    struct profile_session session = { 0 };
    struct child child = { 0 };
    struct trace_info info = { 0 };
    int status = 0;

    file.fd = open(s->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file.fd < 0)
        fail(1, "-o %s: %s", s->output, strerror(errno));
    catch (SIGINT);
    catch (SIGTERM);
    if (s->command[0]) {
        catch (SIGCHLD);
        child_start(&child, s->command);
        begin(s, &session, s->own_only ? (uint32_t)child.pid : s->options.task);
        child_go(&child);
    } else {
        begin(s, &session, s->options.task);
    }
    copy_all(&session);
    profile_trace_info(&session, &info);
    profile_end(&session);
    bool good = finish(s, &info);
    if (s->command[0])
        status = child_end(&child);
    free(child.path);
    print_counts(s, &info);
    return status ? status : good ? 0 : 1;
}
