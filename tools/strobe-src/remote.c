// strobe remote HOST[:PORT]|DEVICE top|record|flame: drives a session of a
// machine on which `remote` runs, over the network or a serial line.
#include "strobe.h"

#include "remote_file.h"
#include "user/libremote/link.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KEY_VARIABLE "STROBE_KEY"
#define REPORT_MS 200
#define REPORT_SERIAL_MS 300
#define TICK_MS 50
#define LINGER_MS 300 // after the end, for what the machine says again
#define PROGRESS_MS 500
#define PAGE_MS 300 // of silence are between two pages of top
#define RECORDED "remote.data"
#define PAGE "remote.html"
#define NEW_PAGE "\033[H\033[J"
#define ERASE_LINE "\r\033[K"

static const char *key_given, *output, *rate_text, *seconds_text, *event_text;
static bool callers;

static const struct tool_option options[] = {
    { 'k', "key", "KEY", "What `remote` has shown (or " KEY_VARIABLE ")",
      .text = &key_given },
    { 'o', "output", "FILE", "Where it goes (" RECORDED ", " PAGE ")",
      .text = &output },
    { 'g', "callers", NULL, "record: each sample with its callers",
      .flag = &callers },
    { 'F', "rate", "HZ", "Samples a second on each CPU (1000)",
      .text = &rate_text },
    { 'e', "event", "EVENTS", "Events of a source that counts",
      .text = &event_text },
    { 0, "for", "SECONDS", "Duration; else until ^C, or the command's end",
      .text = &seconds_text },
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe remote HOST[:PORT]|DEVICE COMMAND [OPTIONS] [-- ...]",
    .options = options,
    .notes =
        "Commands:\n"
        "  top     Shows the machine's top; after --: options of top\n"
        "  record  Records all of the machine; after --: a command to run\n"
        "          there meanwhile\n"
        "  flame   The same with callers, and makes a page of it\n"
        "On the machine runs: remote (or remote -d /dev/ttyS1)\n",
};

static struct remote_client client;
static struct remote_file file = { .fd = -1 };
static FILE *result;
static FILE *work; // it is `file`: the result, or what is copied to it
static struct link link_;
static const char *target;
static volatile sig_atomic_t interrupts;
static uint64_t text_ms; // when the last text came

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void on_interrupt(int signal)
{
    (void)signal;
    interrupts++;
}

// --- the request ------------------------------------------------------------

static void add_word(const char *word)
{
    size_t size = strlen(word) + 1;

    if (size > sizeof(client.words) - client.words_size)
        fail(1, "the command is too long: at most %zu bytes",
             sizeof(client.words));
    memcpy(client.words + client.words_size, word, size);
    client.words_size += size;
}

static void add_option(const char *name, const char *value)
{
    if (!value)
        return;
    add_word(name);
    add_word(value);
}

static void make_request(const char *command, char *const *words)
{
    client.kind = strcmp(command, "top") == 0 ? REMOTE_TOP : REMOTE_RECORD;
    if (client.kind == REMOTE_RECORD) {
        if (callers || strcmp(command, "flame") == 0)
            add_word("-g");
        add_option("-F", rate_text);
        add_option("-e", event_text);
        add_option("--for", seconds_text);
    }
    while (*words)
        add_word(*words++);
}

static void take_key(void)
{
    const char *text = key_given ? key_given : getenv(KEY_VARIABLE);

    if (!text)
        fail(
            USAGE_STATUS,
            "which key? `remote` shows it on the machine's console: --key KEY");
    if (!remote_key_parse(client.key, text))
        fail(USAGE_STATUS, "--key: a key has 32 hexadecimal digits");
}

// --- the link ---------------------------------------------------------------

static void open_serial(void)
{
    if (link_open_serial(&link_, target) == 0)
        return;
    if (errno == EWOULDBLOCK)
        fail(1, "%s is in use: does strobe receive run?", target);
    fail(1, "%s: %s", target,
         errno == ENOTTY ? "not a serial line" : strerror(errno));
}

static void open_host(void)
{
    struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_DGRAM };
    struct addrinfo *found;
    char host[256], port[16];
    const char *colon = strrchr(target, ':');

    snprintf(port, sizeof(port), "%s", colon ? colon + 1 : "");
    if (!colon)
        snprintf(port, sizeof(port), "%d", REMOTE_PORT);
    snprintf(host, sizeof(host), "%.*s",
             (int)(colon ? colon - target : (long)strlen(target)), target);
    int error = getaddrinfo(host, port, &hints, &found);
    if (error != 0)
        fail(1, "%s: %s", target, gai_strerror(error));
    memcpy(&link_.peer, found->ai_addr, sizeof(link_.peer));
    freeaddrinfo(found);
    if (link_open_udp(&link_, 0) < 0)
        fail(1, "a socket: %s", strerror(errno));
}

static void take_datagram(void *arg, const void *datagram, size_t size)
{
    (void)arg;
    remote_client_take(&client, datagram, size, now_ms());
}

static void send_datagram(void *arg, const void *datagram, size_t size)
{
    (void)arg;
    link_send(&link_, true, datagram, size);
}

static void open_link(void)
{
    link_.take = take_datagram;
    client.send = send_datagram;
    client.report_ms = target[0] == '/' ? REPORT_SERIAL_MS : REPORT_MS;
    if (target[0] == '/')
        open_serial();
    else
        open_host();
    if (getrandom(&client.nonce, sizeof(client.nonce), 0) !=
        sizeof(client.nonce))
        fail(1, "getrandom: %s", strerror(errno));
}

// --- what comes -------------------------------------------------------------

static void take_text(const struct remote_piece *p)
{
    uint64_t now = now_ms();

    if (client.kind == REMOTE_TOP && isatty(STDOUT_FILENO) &&
        now - text_ms > PAGE_MS)
        fputs(NEW_PAGE, stdout);
    text_ms = now;
    fwrite(p->bytes, 1, p->size, stdout);
    fflush(stdout);
}

static void take_piece(void *arg, const struct remote_piece *p)
{
    (void)arg;
    if (p->channel == REMOTE_TEXT)
        take_text(p);
    else if (file.fd >= 0)
        remote_file_take(&file, p);
}

static uint64_t samples(void)
{
    uint64_t sum = 0;

    for (unsigned i = 1; i < REMOTE_COUNTERS; i++)
        sum += file.records.counted[i];
    return sum;
}

static void show_progress(uint64_t now)
{
    static uint64_t shown;

    if (file.fd < 0 || !isatty(STDERR_FILENO) || now - shown < PROGRESS_MS)
        return;
    shown = now;
    fprintf(stderr,
            ERASE_LINE "%" PRIu64 " samples, %" PRIu64 " datagrams, %" PRIu64
                       " lost, %" PRIu64 " bytes as %" PRIu64,
            samples(), client.come, client.lost, file.taken, client.bytes);
}

// --- the session ------------------------------------------------------------

static void wait_for_datagrams(void)
{
    struct pollfd fd = { .fd = link_.fd, .events = POLLIN };

    if (poll(&fd, 1, TICK_MS) == 0)
        link_idle(&link_);
    else if (fd.revents != 0 && link_take(&link_) < 0)
        fail(1, "%s: %s", target, strerror(errno));
}

// Until the session has ended, the machine is silent, or a second ^C.
static void serve(void)
{
    int stopped = 0;

    while (client.state <= REMOTE_GETS && interrupts < 2) {
        wait_for_datagrams();
        remote_client_tick(&client, now_ms());
        if (interrupts > stopped) {
            stopped = interrupts;
            remote_client_stop(&client, now_ms());
        }
        if (client.state < REMOTE_GETS && stopped > 0)
            return;
        show_progress(now_ms());
    }
    if (file.fd >= 0 && isatty(STDERR_FILENO))
        fputs(ERASE_LINE, stderr);
    for (uint64_t end = now_ms() + LINGER_MS;
         client.state == REMOTE_ENDED && now_ms() < end;)
        wait_for_datagrams();
}

static void explain(bool started)
{
    if (client.state == REMOTE_DENIED)
        complain("%s: %s", target, client.why);
    else if (client.state == REMOTE_SILENT && !started)
        complain("%s: no answer: does remote run there, with this key?%s",
                 target,
                 client.rejected > 0 ? " (something else answers)" : "");
    else if (client.state == REMOTE_SILENT)
        complain("%s: the connection was lost", target);
    if (client.corrupt > 0)
        complain("%" PRIu64 " datagrams were wrong: is remote of another "
                 "version?",
                 client.corrupt);
}

// A pipe, or /dev/null, can be neither read nor cut off: it has a copy at the
// end.
static FILE *open_work(const char *path)
{
    struct stat st;

    if (fstat(fileno(result), &st) == 0 && S_ISREG(st.st_mode))
        return result;
    FILE *f = tmpfile();
    if (!f)
        fail(1, "%s: no temporary file: %s", path, strerror(errno));
    return f;
}

static void close_work(const char *path)
{
    char part[BUFSIZ];
    size_t n;

    if (work != result) {
        rewind(work);
        while ((n = fread(part, 1, sizeof(part), work)) > 0)
            fwrite(part, 1, n, result);
        fclose(work);
    }
    result_close(result, path);
}

// Completes the file, which then takes the place of an earlier one, and says
// what is in it. On a full disk it has what came first.
static bool finish_file(const char *path)
{
    bool ended = client.state == REMOTE_ENDED;
    const char *problem =
        remote_file_end(&file, ended ? &client.end : NULL, &client);

    if (!problem || file.failed)
        close_work(path);
    if (problem) {
        complain("%s: %s", path, problem);
        return false;
    }
    fprintf(stderr,
            "%s: %" PRIu64 " samples; %" PRIu64 " datagrams, %" PRIu64
            " lost; %" PRIu64 " bytes came as %" PRIu64 "\n",
            path, samples() - (file.lost[1]), client.come + client.lost,
            client.lost, file.taken - file.lost_bytes, client.bytes);
    return true;
}

static int run(const char *path)
{
    struct sigaction stop = { .sa_handler = on_interrupt };

    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    client.take = take_piece;
    open_link();
    if (path) {
        result = result_open(path);
        work = open_work(path);
        remote_file_begin(&file, fileno(work));
    }
    serve();
    bool started = client.come > 0;
    explain(started);
    if (path && started && !finish_file(path))
        return 1;
    return client.state == REMOTE_ENDED ? (int)client.end.status : 1;
}

static int make_page(const char *data, const char *page)
{
    char *arguments[] = { "strobe",     "--html",     "-o",
                          (char *)page, (char *)data, NULL };

    optind = 0; // getopt begins anew
    int status = command_export(5, arguments);
    if (status == 0)
        fprintf(stderr, "%s: open it in a browser\n", page);
    return status;
}

int command_remote(int argc, char *argv[])
{
    int at = options_parse(&tool, argc, argv);

    if (argc - at < 2) {
        complain("which machine, and top, record or flame?");
        options_wrong(&tool);
    }
    target = argv[at];
    const char *command = argv[at + 1];
    bool top = strcmp(command, "top") == 0,
         flame = strcmp(command, "flame") == 0;
    if (!top && !flame && strcmp(command, "record") != 0) {
        complain("%s: not top, record or flame", command);
        options_wrong(&tool);
    }
    take_key();
    make_request(command, argv + at + 2);
    if (top)
        return run(NULL);
    if (!flame)
        return run(output ? output : RECORDED);
    int status = run(RECORDED);
    return client.state == REMOTE_ENDED
               ? status | make_page(RECORDED, output ? output : PAGE)
               : status;
}
