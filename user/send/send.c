// send [OPTIONS] FILE...: sends files over the second serial port.
//
// `strobe receive` (tools/strobe-src) receives them at the other end of the
// cable. Lost or corrupt data is sent again, and an interrupted transfer
// resumes where it stopped (libtransfer/transfer.h).
#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"
#include "user/libtransfer/line.h"
#include "user/libtransfer/sender.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICE "/dev/ttyS1"
#define WAIT_SECONDS 30
#define WAIT_SECONDS_MAX 1000000
#define READ_SIZE 4096
#define PROGRESS_STEP (64 * 1024)
#define ERASE_LINE "\033[K"

static const char *device = DEVICE;
static bool quiet;
static uint32_t wait_seconds = WAIT_SECONDS;

static const struct tool_option options[] = {
    { 'd', "device", "device", "The serial line (" DEVICE ")",
      .text = &device },
    { 'w', "wait", "seconds", "How long to wait for an answer (30)",
      .number = &wait_seconds, .min = 1, .max = WAIT_SECONDS_MAX },
    { 'q', "quiet", NULL, "Say only what is wrong", .flag = &quiet },
    { 0 },
};
static const struct tool tool = {
    .usage = "send [OPTIONS] FILE...",
    .options = options,
    .notes = "At the other end of the cable runs: strobe receive DEVICE\n",
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return !slash ? path : slash + 1;
}

static void open_line(struct line *line)
{
    if (line_open(line, device) == 0)
        return;
    if (errno == EWOULDBLOCK)
        fail(1,
             "%s is in use: tools/vm runs this command over it (put the file "
             "into /out and use its --get), or another send does",
             device);
    if (errno == ENOTTY)
        fail(1, "%s is not a serial line: use -d DEVICE", device);
    fail(1, "%s: %s", device, strerror(errno));
}

static void show_progress(const struct sender *s, uint64_t *shown)
{
    if (quiet || !isatty(STDERR_FILENO) || s->acked < *shown + PROGRESS_STEP)
        return;
    *shown = s->acked;
    fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " bytes", s->acked, s->size);
}

// Serves the line until the sender is done or has failed. Returns false if no
// answer was received for too long.
static bool serve(struct sender *s, struct line *line)
{
    const uint32_t tries =
        (uint32_t)(wait_seconds * 1000 / TRANSFER_TIMEOUT_MS);
    struct frame_reader reader = { 0 };
    uint8_t buf[READ_SIZE];
    uint64_t shown = 0;

    while (s->state != SENDER_DONE && s->state != SENDER_FAILED) {
        int got = line_read(line, buf, sizeof(buf), TRANSFER_TIMEOUT_MS);

        if (got < 0)
            fail(1, "%s: %s", device, strerror(line->error));
        if (got > 0) {
            frame_feed(&reader, buf, (size_t)got, sender_take, s);
        } else {
            frame_idle(&reader, sender_take, s);
            sender_timeout(s);
        }
        if (s->unanswered > tries)
            return false;
        show_progress(s, &shown);
    }
    if (shown > 0)
        fprintf(stderr, "\r" ERASE_LINE);
    return true;
}

static int open_file(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;

    if (file < 0 || fstat(file, &about) < 0) {
        complain("%s: %s", path, strerror(errno));
        return -1;
    }
    if (!S_ISREG(about.st_mode)) {
        complain(
            "%s is not a regular file: make one of it first (tar, cat >file)",
            path);
        close(file);
        return -1;
    }
    return file;
}

static void report(const struct sender *s, const char *path)
{
    if (s->state == SENDER_FAILED) {
        complain("%s: refused by the receiver: %s", path, s->problem);
        return;
    }
    if (quiet)
        return;
    printf("%s: %" PRIu64 " bytes sent", path, s->size);
    if (s->resumed > 0)
        printf(", %" PRIu64 " of them already there", s->resumed);
    if (s->frames_resent > 0)
        printf(", %" PRIu64 " pieces more than once", s->frames_resent);
    printf("\n");
}

static bool send_file(struct line *line, const char *path)
{
    struct sender s = { .put = line_put, .line = line };

    s.file = open_file(path);
    if (s.file < 0)
        return false;
    if (sender_start(&s, base_name(path)) < 0) {
        complain("%s: %s", path, strerror(errno));
        close(s.file);
        return false;
    }
    if (!serve(&s, line))
        fail(1,
             "no answer on %s: is `strobe receive` running at the other end of "
             "the cable? %" PRIu64 " of %" PRIu64 " bytes of %s have arrived; "
             "send it again to resume from there",
             device, s.acked, s.size, path);
    report(&s, path);
    close(s.file);
    return s.state == SENDER_DONE;
}

int main(int argc, char *argv[])
{
    int first = options_parse(&tool, argc, argv), status = 0;
    struct line line;

    if (first == argc) {
        complain("which files?");
        options_wrong(&tool);
    }
    open_line(&line);
    for (int i = first; i < argc; i++)
        status |= !send_file(&line, argv[i]);
    return status;
}
