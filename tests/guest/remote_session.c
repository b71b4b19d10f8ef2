// remote, by a client in the same machine: sessions of sprofile and top, their
// ends, and those that have no key.
#include "test.h"

#include <poll.h>
#include <sys/random.h>

#include "user/libremote/client.h"
#include "user/libremote/link.h"
#include "user/libremote/records.h"

#define PORT 5010
#define PORT_TEXT "5010"
#define RANDOM_DATAGRAMS 500
#define REPORT_MS 100

static pid_t remote;
static int said_fd;
static char said[10000]; // by remote
static size_t said_size;

static struct remote_client client;
static struct link link_;
static struct records records;
static uint64_t file_bytes, key_words[2];
static char text[20000]; // of the session
static size_t text_size;

static uint64_t now_ms(void)
{
    return now_ns() / 1000000;
}

// Reads what remote says until it has said `what`.
static const char *wait_said(const char *what)
{
    char *found;

    while (!(found = strstr(said, what)) || !strchr(found, '\n')) {
        ssize_t n =
            read(said_fd, said + said_size, sizeof(said) - 1 - said_size);
        check(n > 0);
        said_size += n;
        said[said_size] = '\0';
    }
    return found + strlen(what);
}

static void start_remote(void)
{
    char key[REMOTE_KEY_TEXT] = "";
    int ends[2];

    check(pipe(ends) == 0);
    remote = fork();
    check(remote >= 0);
    if (remote == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        execl("/bin/remote", "remote", "-p", PORT_TEXT, NULL);
        _exit(1);
    }
    close(ends[1]);
    said_fd = ends[0];
    said_size = 0;
    memcpy(key, wait_said("the key is "), 35);
    check(remote_key_parse((uint8_t *)key_words, key));
}

// --- a client

static void take_piece(void *arg, const struct remote_piece *p)
{
    (void)arg;
    if (p->channel == REMOTE_FILE) {
        check(p->offset == file_bytes);
        file_bytes += p->size;
        records_read(&records, p->bytes, p->size, NULL);
        check(!records.corrupt);
    } else {
        check(p->offset == text_size && text_size + p->size < sizeof(text));
        memcpy(text + text_size, p->bytes, p->size);
        text_size += p->size;
        text[text_size] = '\0';
    }
}

static void take(void *arg, const void *datagram, size_t size)
{
    remote_client_take(arg, datagram, size, now_ms());
}

static void put(void *arg, const void *datagram, size_t size)
{
    (void)arg;
    link_send(&link_, true, datagram, size);
}

static void begin(uint8_t kind, const char *const *words)
{
    client = (struct remote_client){
        .kind = kind, .report_ms = REPORT_MS, .send = put, .take = take_piece
    };
    memcpy(client.key, key_words, sizeof(client.key));
    check(getrandom(&client.nonce, sizeof(client.nonce), 0) > 0);
    for (; *words; words++) {
        strcpy(client.words + client.words_size, *words);
        client.words_size += strlen(*words) + 1;
    }
    records = (struct records){ 0 };
    file_bytes = text_size = 0;
    text[0] = '\0';
}

#define BEGIN(kind, ...) begin(kind, (const char *const[]){ __VA_ARGS__, NULL })

static void serve(void)
{
    struct pollfd fd = { link_.fd, POLLIN, 0 };

    poll(&fd, 1, 20);
    check(link_take(&link_) == 0);
    remote_client_tick(&client, now_ms());
}

static void serve_to_the_end(void)
{
    while (client.state <= REMOTE_GETS)
        serve();
}

// A session whose command has printed its pid. Returns that.
static pid_t begin_long(void)
{
    BEGIN(REMOTE_RECORD, "sh", "-c", "echo $$; exec sleep 1000");
    while (!strchr(text, '\n') || file_bytes < 1000) {
        serve();
        check(client.state <= REMOTE_GETS);
    }
    check(kill(atoi(text), 0) == 0);
    return atoi(text);
}

static void check_gone(pid_t pid)
{
    for (int i = 0; i < 500 && kill(pid, 0) == 0; i++)
        sleep_ms(10); // init may not have waited for it yet
    check_error(kill(pid, 0), ESRCH);
}

// --- tests

static void record(void)
{
    BEGIN(REMOTE_RECORD, "-g", "-F", "2000", "sh", "-c",
          "echo hello; ls -R / >/dev/null; exit 3");
    serve_to_the_end();
    check(client.state == REMOTE_ENDED);
    check(client.end.status == 3 && strcmp(text, "hello\n") == 0);
    check(records.headed && records.counted[1] > 0);
    check(records.counted[0] == client.end.counted[0]);
    check(records.counted[1] == client.end.counted[1]);
    check(file_bytes == client.end.size[REMOTE_FILE]);
    check(client.end.raw_bytes == file_bytes + text_size);
    check(client.end.sent_bytes < client.end.raw_bytes / 2);
    check(client.end.program_ns > 0 && client.lost + client.corrupt == 0);
    wait_said("the session has ended: ");
    ok("a session records, and its end has the status and the costs");
}

static void top(void)
{
    BEGIN(REMOTE_TOP, "-n", "2", "-d", "1");
    serve_to_the_end();
    check(client.state == REMOTE_ENDED && client.end.status == 0);
    check(strstr(text, "remote") && strstr(text, "CPU") && file_bytes == 0);
    ok("top");
}

static void failures(void)
{
    BEGIN(REMOTE_RECORD, "--nonsense");
    serve_to_the_end();
    check(client.state == REMOTE_ENDED && client.end.status == 2);
    check(strstr(text, "Usage: sprofile") && file_bytes == 0);
    BEGIN(REMOTE_RECORD, "/nonexistent");
    serve_to_the_end();
    check(client.end.status == 127 && strstr(text, "/nonexistent"));
    begin(9, (const char *const[]){ NULL });
    serve_to_the_end();
    check(client.state == REMOTE_DENIED && strstr(client.why, "understood"));
    ok("commands that fail, and requests that are not known");
}

static void stop(void)
{
    pid_t pid = begin_long();

    remote_client_stop(&client, now_ms());
    serve_to_the_end();
    check(client.state == REMOTE_ENDED && records.counted[0] > 0);
    check(file_bytes == client.end.size[REMOTE_FILE]);
    check_gone(pid);
    ok("a session ends when it is asked to, with its command");
}

static void vanish(void)
{
    pid_t pid = begin_long();
    uint64_t nonce = client.nonce, start = now_ms();

    // Another client cannot have it.
    BEGIN(REMOTE_TOP, "-n", "1");
    check(client.nonce != nonce);
    serve_to_the_end();
    check(client.state == REMOTE_DENIED && kill(pid, 0) == 0);
    wait_said("the client has vanished");
    check(now_ms() - start >= REMOTE_SILENCE_MS - REPORT_MS);
    check_gone(pid);
    ok("one session at a time; without its client it ends");
}

static void strangers(void)
{
    uint8_t bytes[1500];
    uint64_t right = key_words[1];

    for (int i = 0; i < RANDOM_DATAGRAMS; i++) {
        check(getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes));
        uint32_t size = (bytes[0] << 8 | bytes[1]) % sizeof(bytes);
        if (i % 2)
            remote_head_make(bytes, "hsrd"[i / 2 % 4], client.session);
        link_send(&link_, true, bytes, size);
        if (i % 20 == 0)
            sleep_ms(1); // so that its queue takes them
    }
    serve(); // what has come for clients before this one
    check(poll(&(struct pollfd){ link_.fd, POLLIN, 0 }, 1, 100) == 0);
    key_words[1]++;
    BEGIN(REMOTE_TOP, "-n", "1");
    serve_to_the_end();
    check(client.state == REMOTE_SILENT && client.rejected == 0);
    check(client.session == 0);
    key_words[1] = right;
    wait_said("without the key or damaged, the last from 127.0.0.1:");
    BEGIN(REMOTE_TOP, "-n", "1");
    serve_to_the_end();
    check(client.state == REMOTE_ENDED);
    check(!strstr(strstr(said, "without the key") + 1, "without the key"));
    ok("datagrams without the key: one message, no answer, and it goes on");
}

static void remote_ends(void)
{
    pid_t pid = begin_long();
    int status;

    check(kill(remote, SIGTERM) == 0 && waitpid(remote, &status, 0) == remote);
    check(exited_with(status, 0));
    check_gone(pid);
    serve_to_the_end();
    check(client.state == REMOTE_SILENT);
    ok("when remote ends, so does what it has started");
}

int main(void)
{
    alarm(TEST_SECONDS);
    start_remote();
    check(link_open_udp(&link_, 0) == 0);
    link_.take = take;
    link_.arg = &client;
    link_.peer =
        (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT) };
    link_.peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    record();
    top();
    failures();
    stop();
    vanish();
    strangers();
    remote_ends();
    return 0;
}
