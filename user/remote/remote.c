// remote [OPTIONS]: lets strobe remote, on another machine, profile this one.
//
// It shows a key on the console, and waits for datagrams made with it, from the
// network or a serial line: `strobe remote` starts sprofile or top here, and
// gets what they write (libremote/message.h). All other datagrams are counted.
#define _GNU_SOURCE // pipe2
#include "user/libremote/link.h"
#include "user/libremote/server.h"
#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"

#include "cost.h"
#include "program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define PORT 7876
#define RESEND_MS 100
#define RESEND_SERIAL_MS 1500
#define AHEAD_SERIAL 8 // datagrams; they take 1 s at 115200 bit/s
#define TICK_MS 500
#define PUMP_BYTES 65536
#define MESSAGE_MS 10000 // between two messages about rejected datagrams
#define CANNOT_RUN 126   // exit status, as in shells

static uint32_t port = PORT;
static const char *device;
static bool once;

static const struct tool_option options[] = {
    { 'p', "port", "port", "The UDP port (7876)", .number = &port, .min = 1,
      .max = UINT16_MAX },
    { 'd', "device", "device", "A serial line instead (/dev/ttyS1)",
      .text = &device },
    { '1', "once", NULL, "Exit after the first session", .flag = &once },
    { 0 },
};
static const struct tool tool = {
    .usage = "remote [OPTIONS]",
    .options = options,
    .notes = "On the developer's machine: strobe remote HOST --key KEY top | "
             "record | flame\n",
    .no_operands = "remote takes options only",
};

static struct remote_server server;
static struct link link_;
static struct program program = { .file = -1, .text = -1 };
static struct cost cost_before;
static uint64_t rejected, said_ms;
static volatile sig_atomic_t interrupted;
static int wakeup[2]; // a pipe, written by signal handlers

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void on_signal(int signal)
{
    int saved = errno;

    interrupted |= signal != SIGCHLD;
    (void)!write(wakeup[1], "", 1);
    errno = saved;
}

static void watch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal };

    if (pipe2(wakeup, O_CLOEXEC | O_NONBLOCK) < 0)
        fail(1, "pipe: %s", strerror(errno));
    sigaction(SIGCHLD, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

static void draw(void *arg, void *bytes, size_t size)
{
    (void)arg;
    if (getrandom(bytes, size, 0) != (ssize_t)size)
        fail(1, "getrandom: %s", strerror(errno));
}

static void send_out(void *arg, bool client, const void *datagram, size_t size)
{
    (void)arg;
    link_send(&link_, client, datagram, size);
}

static const char *name_of(const struct sockaddr_in *a, char text[32])
{
    char ip[INET_ADDRSTRLEN] = "?";

    if (link_.serial)
        return device;
    inet_ntop(AF_INET, &a->sin_addr, ip, sizeof(ip));
    snprintf(text, 32, "%s:%u", ip, ntohs(a->sin_port));
    return text;
}

// --- sessions ---------------------------------------------------------------

static void say_rejected(uint64_t now)
{
    char from[32];

    rejected++;
    if (said_ms != 0 && now - said_ms < MESSAGE_MS)
        return;
    said_ms = now;
    complain("%" PRIu64 " datagram%s without the key or damaged, the last from "
             "%s: ignored",
             rejected, rejected == 1 ? "" : "s", name_of(&link_.from, from));
}

static void begin(void)
{
    char from[32];

    printf("remote: %s begins a session\n", name_of(&link_.from, from));
    fflush(stdout);
    cost_read(&cost_before);
    program_kill(&program);
    if (program_start(&program, server.kind, server.words, server.words_size) <
        0) {
        complain("cannot start it: %s", strerror(errno));
        program.ended = true;
        program.status = CANNOT_RUN;
    }
}

static void take(void *arg, const void *datagram, size_t size)
{
    uint64_t now = now_ms();
    enum remote_event event = remote_server_take(&server, datagram, size, now);

    (void)arg;
    if (event == REMOTE_REJECTED)
        say_rejected(now);
    if (event > REMOTE_REJECTED)
        link_.peer = link_.from;
    if (event == REMOTE_BEGIN)
        begin();
    if (event == REMOTE_STOP)
        program_stop(&program, now);
}

// Reads what the program has written, but not so much that a slow line keeps it
// from taking datagrams. Returns false if there may be more.
static bool pump(int *fd, enum remote_channel channel)
{
    size_t room, left = PUMP_BYTES;
    uint8_t *to;

    while (*fd >= 0 && left > 0 &&
           (to = remote_server_room(&server, channel, &room), room > 0)) {
        ssize_t got = read(*fd, to, room < left ? room : left);
        if (got < 0)
            return errno == EAGAIN;
        if (got == 0) {
            close(*fd);
            *fd = -1;
        }
        remote_server_added(&server, channel, (size_t)got, now_ms());
        left -= (size_t)got;
    }
    return *fd < 0;
}

static void end(void)
{
    struct remote_end e = { .status = (uint64_t)program.status };
    struct cost cost;

    program_kill(&program);
    cost_read(&cost);
    e.program_ns = cost.program_ns - cost_before.program_ns;
    e.net_ns = cost.net_ns - cost_before.net_ns;
    remote_server_end(&server, &e, now_ms());
    printf("remote: the session has ended: %" PRIu64 " datagrams, %" PRIu64
           " bytes\n",
           e.datagrams, e.sent_bytes);
    fflush(stdout);
}

static void serve_session(void)
{
    bool ended = program_ended(&program); // before the last bytes are read
    bool all = pump(&program.file, REMOTE_FILE);

    all &= pump(&program.text, REMOTE_TEXT);
    if (remote_server_flush(&server, now_ms()) && all && ended)
        end();
}

static void tick(void)
{
    if (!remote_server_tick(&server, now_ms()))
        return;
    if (program.pid != 0)
        complain("the client has vanished: the session is over");
    program_kill(&program);
}

// Whether the channel has room for what the descriptor has.
static bool wants(enum remote_channel channel)
{
    size_t room;

    remote_server_room(&server, channel, &room);
    return server.state == REMOTE_RUNNING && room > 0;
}

static void wait_for_something(void)
{
    char bytes[64];
    struct pollfd fds[] = {
        { .fd = link_.fd, .events = POLLIN },
        { .fd = wakeup[0], .events = POLLIN },
        { .fd = wants(REMOTE_FILE) ? program.file : -1, .events = POLLIN },
        { .fd = wants(REMOTE_TEXT) ? program.text : -1, .events = POLLIN },
    };
    bool idle = server.state == REMOTE_IDLE && link_.reader.used == 0;

    if (poll(fds, sizeof(fds) / sizeof(fds[0]), idle ? -1 : TICK_MS) == 0)
        link_idle(&link_);
    while (read(wakeup[0], bytes, sizeof(bytes)) > 0)
        ;
    if (fds[0].revents != 0 && link_take(&link_) < 0)
        fail(1, "%s: %s", device, strerror(errno));
}

static void serve(void)
{
    bool began = false;

    while (!interrupted && !(once && began && server.state == REMOTE_IDLE)) {
        wait_for_something();
        if (server.state == REMOTE_RUNNING)
            serve_session();
        began |= server.state != REMOTE_IDLE;
        tick();
    }
    program_kill(&program);
}

// --- start ------------------------------------------------------------------

static void open_link(void)
{
    if (!device && link_open_udp(&link_, (uint16_t)port) < 0)
        fail(1, "port %u: %s", port, strerror(errno));
    if (!device || link_open_serial(&link_, device) == 0)
        return;
    if (errno == EWOULDBLOCK)
        fail(1,
             "%s is in use: tools/vm runs this command over it, or send does",
             device);
    fail(1, "%s: %s", device,
         errno == ENOTTY ? "not a serial line" : strerror(errno));
}

int main(int argc, char *argv[])
{
    char key[REMOTE_KEY_TEXT];

    options_parse(&tool, argc, argv);
    link_.take = take;
    server.send = send_out;
    server.random = draw;
    server.resend_ms = device ? RESEND_SERIAL_MS : RESEND_MS;
    server.ahead_max = device ? AHEAD_SERIAL : 0;
    watch_signals();
    open_link();
    draw(NULL, server.key, sizeof(server.key));
    remote_key_print(key, server.key);
    if (device)
        printf("remote: waiting on %s; the key is %s\n", device, key);
    else
        printf("remote: waiting at UDP port %u; the key is %s\n", port, key);
    fflush(stdout);
    serve();
    return 0;
}
