// Both ends of a session of strobe remote, and between them a network that
// loses, repeats, changes and delays datagrams, on a clock of its own. The
// "program" is a perf.data file in memory.
#pragma once

#include "test.h"

#include <strobe/kbox.h>

#include "tools/strobe-src/remote_file.h"
#include "user/libremote/client.h"
#include "user/libremote/server.h"

#define QUEUE 2048
#define STEP_MS 10
#define STEPS_MAX 20000 // of one session, before it counts as stuck
#define REPORT_MS 100
#define RESEND_MS 100

struct flying {
    bool used;
    u64 due;
    size_t size;
    u8 bytes[REMOTE_DATAGRAM_MAX];
};

// One direction. Of 1000 datagrams so many are ...
struct way {
    u32 lost, twice, changed, late;
    u32 delay; // ms, of all
    bool dead;
    u64 datagrams, bytes; // that were sent
    struct flying queue[QUEUE];
};

static struct way to_server, to_client;
static struct remote_server server;
static struct remote_client client;
static struct remote_file file;
static u64 now;
static u32 begins, stops, vanished;

// What the program writes, and how much of it was written.
static u8 *content;
static size_t content_size, written;
static u32 per_step; // bytes
static char text[100];

static inline void fly(struct way *w, const u8 *bytes, size_t size, u64 due)
{
    u32 i = 0;

    while (i < QUEUE && w->queue[i].used)
        i++;
    assert_true(i < QUEUE && size <= REMOTE_DATAGRAM_MAX);
    w->queue[i] = (struct flying){ .used = true, .due = due, .size = size };
    memcpy(w->queue[i].bytes, bytes, size);
}

static inline void transmit(struct way *w, const void *bytes, size_t size)
{
    u8 changed[REMOTE_DATAGRAM_MAX];

    w->datagrams++;
    w->bytes += size;
    if (w->dead || random_below(1000) < w->lost)
        return;
    memcpy(changed, bytes, size);
    if (random_below(1000) < w->changed)
        changed[random_below(size)] ^= 1u << random_below(8);
    fly(w, changed, size,
        now + w->delay +
            (random_below(1000) < w->late ? random_below(300) : 0));
    if (random_below(1000) < w->twice)
        fly(w, changed, size, now + random_below(300));
}

static inline void server_sends(void *arg UNUSED, bool to_peer UNUSED,
                                const void *bytes, size_t size)
{
    transmit(&to_client, bytes, size);
}

static inline void client_sends(void *arg UNUSED, const void *bytes,
                                size_t size)
{
    transmit(&to_server, bytes, size);
}

static inline void draw(void *arg UNUSED, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((u8 *)bytes)[i] = random_u64();
}

static inline void take_piece(void *arg UNUSED, const struct remote_piece *p)
{
    if (p->channel == REMOTE_FILE)
        remote_file_take(&file, p);
    else if (p->offset + p->size < sizeof(text))
        memcpy(text + p->offset, p->bytes, p->size);
}

static inline void to_the_server(const u8 *bytes, size_t size)
{
    switch (remote_server_take(&server, bytes, size, now)) {
    case REMOTE_BEGIN:
        begins++;
        written = 0;
        break;
    case REMOTE_STOP:
        stops++;
        break;
    default:
        break;
    }
}

static inline void arrive(struct way *w)
{
    for (u32 i = 0; i < QUEUE; i++) {
        struct flying *f = &w->queue[i];
        if (!f->used || f->due > now)
            continue;
        f->used = false;
        // In memory of its own, so that no byte beyond it is read.
        u8 *own = malloc(f->size);
        memcpy(own, f->bytes, f->size);
        if (w == &to_server)
            to_the_server(own, f->size);
        else
            remote_client_take(&client, own, f->size, now);
        free(own);
    }
}

// The program writes; it ends after all, or when it was asked to stop.
static inline void run_program(void)
{
    size_t left = stops > 0 ? 0 : MIN(content_size - written, per_step), room;

    while (left > 0) {
        u8 *to = remote_server_room(&server, REMOTE_FILE, &room);
        size_t n = MIN(MIN(left, room), (size_t)1 + random_below(5000));
        if (n == 0)
            break;
        memcpy(to, content + written, n);
        remote_server_added(&server, REMOTE_FILE, n, now);
        written += n;
        left -= n;
    }
    if (remote_server_flush(&server, now) &&
        (written == content_size || stops > 0)) {
        struct remote_end end = { .status = 3, .program_ns = 5000 };
        if (server.channels[REMOTE_TEXT].offset == 0) {
            memcpy(remote_server_room(&server, REMOTE_TEXT, &room), "text", 4);
            remote_server_added(&server, REMOTE_TEXT, 4, now);
        }
        if (remote_server_flush(&server, now))
            remote_server_end(&server, &end, now);
    }
}

static inline void step(void)
{
    now += STEP_MS;
    remote_client_tick(&client, now);
    arrive(&to_server);
    if (server.state == REMOTE_RUNNING)
        run_program();
    vanished += remote_server_tick(&server, now);
    arrive(&to_client);
}

static inline void run_to_the_end(void)
{
    u32 steps = 0;

    while (client.state <= REMOTE_GETS) {
        step();
        assert_true(++steps < STEPS_MAX);
    }
}

static inline void start_client(void)
{
    u8 key[SIPHASH_KEY];

    memcpy(key, server.key, sizeof(key));
    client = (struct remote_client){ .kind = REMOTE_RECORD,
                                     .report_ms = REPORT_MS,
                                     .send = client_sends,
                                     .take = take_piece };
    memcpy(client.key, key, sizeof(key));
    draw(NULL, &client.nonce, sizeof(client.nonce));
    memcpy(client.words, "lua\0x", 6);
    client.words_size = 6;
    memset(text, 0, sizeof(text));
    begins = stops = vanished = 0;
}

static inline void start_server(void)
{
    server = (struct remote_server){ .send = server_sends,
                                     .random = draw,
                                     .resend_ms = RESEND_MS };
    draw(NULL, server.key, sizeof(server.key));
    now = 1000;
}

static inline void set_network(u32 lost, u32 twice, u32 changed, u32 late)
{
    static const struct way empty;
    struct way *both[] = { &to_server, &to_client };

    for (u32 i = 0; i < 2; i++) {
        *both[i] = empty;
        both[i]->lost = lost;
        both[i]->twice = twice;
        both[i]->changed = changed;
        both[i]->late = late;
    }
}
