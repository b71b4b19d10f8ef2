// strobe receive [OPTIONS] DEVICE: receives files that Strobe's `send` sends
// over a serial line.
//
// It runs until interrupted, or until it has received -n files. If the receiver
// or the sender is restarted in the middle of a file, the transfer resumes.
#include "strobe.h"

#include "user/libtransfer/line.h"
#include "user/libtransfer/receiver.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define READ_SIZE 4096
#define IDLE_MS 200 // silence after which an incomplete frame is dropped
#define FILES_MAX 1000000

static const char *directory = ".", *count_text = "0";
static uint32_t count, done; // 0: no limit

static const struct tool_option options[] = {
    { 'd', "directory", "dir", "Where files go (.)", .text = &directory },
    { 'n', "number", "files", "Exit after this many files",
      .text = &count_text },
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe receive [OPTIONS] DEVICE",
    .options = options,
    .notes = "On Strobe: send FILE...\n",
};

// Prints the sender's bytes; '?' replaces those that could control a terminal.
static void print_name(const char *name)
{
    for (; *name != '\0'; name++)
        putchar(*name >= ' ' && *name <= '~' ? *name : '?');
}

static void began(void *user, const struct receiver *r)
{
    (void)user;
    print_name(r->store.name);
    printf(": %" PRIu64 " bytes", r->size);
    if (r->resumed > 0)
        printf(", going on at %" PRIu64, r->resumed);
    printf("\n");
    fflush(stdout);
}

static void ended(void *user, const struct receiver *r)
{
    (void)user;
    if (r->problem[0] != '\0') {
        complain("refused: %s", r->problem);
        return;
    }
    print_name(r->store.placed);
    printf(": complete, CRC-32 %08" PRIx32 "\n", r->crc_wanted);
    fflush(stdout);
    done++;
}

static void open_line(struct line *line, const char *device)
{
    if (line_open(line, device) == 0)
        return;
    if (errno == EWOULDBLOCK)
        fail(1, "%s is in use: does another receive run?", device);
    if (errno == ENOTTY)
        fail(1, "%s is not a serial line", device);
    if (errno == EACCES)
        fail(1, "%s: %s: are you in the group that owns it (dialout)?", device,
             strerror(errno));
    fail(1, "%s: %s", device, strerror(errno));
}

// Serves the line. Returns once `count` files are complete and the sender has
// stopped asking whether they are.
static void serve(struct receiver *r, struct line *line, const char *device)
{
    struct frame_reader reader = { 0 };
    uint8_t buf[READ_SIZE];
    int got, waited = 0;

    while (count == 0 || done < count || waited < 2 * TRANSFER_TIMEOUT_MS) {
        got = line_read(line, buf, sizeof(buf), IDLE_MS);
        if (got < 0)
            fail(1, "%s: %s; start again when the device is back", device,
                 strerror(line->error));
        if (got > 0)
            frame_feed(&reader, buf, (size_t)got, receiver_take, r);
        else
            frame_idle(&reader, receiver_take, r);
        waited = got > 0 ? 0 : waited + IDLE_MS;
    }
}

int command_receive(int argc, char *argv[])
{
    int first = options_parse(&tool, argc, argv);
    struct line line;
    struct receiver r = {
        .put = line_put,
        .line = &line,
        .began = began,
        .ended = ended,
        .store = { .part = -1 },
    };

    if (!decimal(count_text, 0, FILES_MAX, &count)) {
        complain("'%s' is no number of files", count_text);
        options_wrong(&tool);
    }
    if (first != argc - 1) {
        complain(first == argc ? "from which serial line?" : "one line only");
        options_wrong(&tool);
    }
    r.store.directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r.store.directory < 0)
        fail(1, "%s: %s", directory, strerror(errno));
    open_line(&line, argv[first]);
    serve(&r, &line, argv[first]);
    return 0;
}
