// user/libremote: datagrams of a peer that has the key. An input is a list of
// datagrams to either side; session, key and code are put in here. What comes
// of them is a file of whole records, or none.
// link: user/libstrobe/core_clock.c
// link: user/libremote/siphash.c user/libremote/message.c
// link: user/libremote/records.c user/libremote/server.c
// link: user/libremote/client.c tools/strobe-src/remote_file.c
// link: build/lz4/src/lib/lz4.c user/libstrobe/table.c
// link: user/libprofile/perf_repair.c user/libprofile/perf_features.c
// link: user/libprofile/perf_walk.c user/libprofile/mapping.c
// link: user/libprofile/perf_topology.c
#define _GNU_SOURCE // memfd_create
#include "host.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/strobe-src/remote_file.h"
#include "user/libprofile/perf_walk.h"
#include "user/libremote/server.h"

#define SESSION 7
#define FILE_MAX (1 << 20)

static struct remote_server server;
static struct remote_client client;
static struct remote_file file;
static int fd = -1;
static u64 now;

static void check(const void *datagram, size_t size)
{
    REQUIRE(size <= REMOTE_DATAGRAM_MAX);
    REQUIRE(remote_check(server.key, datagram, size) == size - REMOTE_CODE);
}

static void server_sends(void *arg UNUSED, bool to_peer UNUSED,
                         const void *datagram, size_t size)
{
    check(datagram, size);
}

static void client_sends(void *arg UNUSED, const void *datagram, size_t size)
{
    check(datagram, size);
}

static void draw(void *arg UNUSED, void *bytes, size_t size)
{
    static u8 next;

    memset(bytes, ++next, size);
}

static void take_piece(void *arg UNUSED, const struct remote_piece *p)
{
    REQUIRE(p->size <= REMOTE_RAW_MAX && p->channel < REMOTE_END);
    REQUIRE(p->first == REMOTE_NONE || p->first <= p->size);
    for (size_t i = 0; i < p->size; i++)
        (void)*(volatile const u8 *)(p->bytes + i);
    if (p->channel == REMOTE_FILE)
        remote_file_take(&file, p);
}

static void start(void)
{
    if (fd < 0)
        fd = memfd_create("file", 0);
    REQUIRE(fd >= 0 && ftruncate(fd, 0) == 0);
    remote_file_begin(&file, fd);
    now = 1;
    server = (struct remote_server){ .send = server_sends, .random = draw };
    client = (struct remote_client){ .send = client_sends,
                                     .take = take_piece,
                                     .state = REMOTE_GETS,
                                     .session = SESSION };
}

// Fills in what an input could not guess.
static void help(struct remote_data *d, size_t size, u8 how)
{
    if (size < sizeof(*d) || !(how & 1))
        return;
    d->number = client.next + d->number % 8;
    d->oldest = how & 2 ? d->number : client.oldest;
    d->channel &= 3;
    if (how & 4)
        d->offset = file.taken + (how & 8 ? d->offset % 64 : 0);
    if (how & 16) {
        d->packed = 0;
        d->raw_size = (u16)(size - sizeof(*d) - d->counters % 18 * 4);
        d->counters %= 18;
    }
}

static void step(struct input *in)
{
    static const char types[] = "ddddhcsaxr";
    u8 bytes[REMOTE_DATAGRAM_MAX] = { 0 }, how = take_byte(in);
    u8 type = (u8)types[take_byte(in) % (sizeof(types) - 1)];
    size_t size = sizeof(struct remote_head) +
                  take_number(in, 2) % (REMOTE_DATAGRAM_MAX - REMOTE_CODE -
                                        sizeof(struct remote_head) + 1);
    bool to_client = type == REMOTE_DATA || how & 32;

    for (size_t i = sizeof(struct remote_head); i < size && in->left; i++)
        bytes[i] = take_byte(in);
    remote_head_make(bytes, type,
                     to_client              ? SESSION
                     : type == REMOTE_START ? server.next_session
                                            : server.session);
    if (type == REMOTE_DATA)
        help((struct remote_data *)bytes, size, how);
    size = remote_seal(server.key, bytes, size);
    u8 *own = guarded(bytes, size);
    if (to_client)
        remote_client_take(&client, own, size, now);
    else
        remote_server_take(&server, own, size, now);
    free(own);
    now += how & 64 ? 500 : 1;
    remote_client_tick(&client, now);
    remote_server_tick(&server, now);
}

static void write_some(struct input *in)
{
    size_t room, size = take_number(in, 2);
    enum remote_channel channel = take_byte(in) % REMOTE_END;
    u8 *to = remote_server_room(&server, channel, &room), value = take_byte(in);

    if (server.state != REMOTE_RUNNING)
        return;
    size = MIN(size, room);
    for (size_t i = 0; i < size; i++)
        to[i] = (u8)(value + i % 7);
    remote_server_added(&server, channel, size, now);
    remote_server_flush(&server, now);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct input in = { data, size };
    struct perf_layout layout;
    struct perf_walk walk = { .layout = &layout };
    struct perf_view view;

    start();
    while (in.left && file.at < FILE_MAX) {
        if (in.at[0] % 16 == 15)
            write_some(&in);
        else
            step(&in);
    }
    const char *problem = remote_file_end(
        &file, client.state == REMOTE_ENDED ? &client.end : NULL, &client);
    if (problem)
        return 0;
    size_t length = (size_t)lseek(fd, 0, SEEK_END);
    u8 *whole = malloc(length);
    REQUIRE(whole && pread(fd, whole, length, 0) == (ssize_t)length);
    // A header that nobody can read is the peer's. Else all records are whole.
    if (!perf_layout(&layout, whole, length)) {
        while (perf_next(&walk, &view))
            ;
        REQUIRE(!walk.corrupt && walk.cut_bytes == 0 && !layout.cut);
    }
    free(whole);
    return 0;
}
