#include "user/libremote/client.h"

#include <lz4.h>
#include <string.h>

#define ASK_MS 250    // between two HELLOs or STARTs
#define START_TRIES 4 // then the session's number is asked for again

static void put(struct remote_client *c, void *datagram, size_t size,
                uint64_t now)
{
    c->said_ms = now;
    c->send(c->arg, datagram, remote_seal(c->key, datagram, size));
}

static void put_hello(struct remote_client *c, uint64_t now)
{
    uint8_t room[sizeof(struct remote_hello) + REMOTE_CODE] = { 0 };

    remote_head_make(room, REMOTE_HELLO, c->nonce);
    put(c, room, sizeof(struct remote_hello), now);
}

static void put_start(struct remote_client *c, uint64_t now)
{
    uint8_t
        room[sizeof(struct remote_start) + REMOTE_REQUEST_MAX + REMOTE_CODE];
    struct remote_start *m = (struct remote_start *)room;

    remote_head_make(room, REMOTE_START, c->session);
    m->nonce = c->nonce;
    m->kind = c->kind;
    memcpy(m->words, c->words, c->words_size);
    c->tries++;
    put(c, room, sizeof(*m) + c->words_size, now);
}

static struct remote_kept *kept_of(struct remote_client *c, uint32_t number)
{
    return &c->kept[number % REMOTE_WINDOW];
}

static void put_report(struct remote_client *c, uint64_t now)
{
    uint8_t room[sizeof(struct remote_report) + REMOTE_CODE] = { 0 };
    struct remote_report *r = (struct remote_report *)room;

    remote_head_make(room, REMOTE_REPORT, c->session);
    r->counter = ++c->counter;
    r->next = c->next;
    r->stop = c->stop;
    for (uint32_t i = 0; i < REMOTE_REPORTED; i++) {
        if (kept_of(c, c->next + i)->size > 0)
            r->come[i / 8] |= (uint8_t)(1 << i % 8);
    }
    put(c, room, sizeof(*r), now);
}

// --- data -------------------------------------------------------------------

// Unpacks a datagram whose head and counters are `head` bytes long.
static bool unpack(struct remote_client *c, const struct remote_kept *k,
                   size_t head, struct remote_piece *p)
{
    const struct remote_data *d = (const struct remote_data *)k->bytes;

    p->bytes = k->bytes + head;
    if (!d->packed)
        return p->size == k->size - head;
    p->bytes = c->raw;
    return LZ4_decompress_safe((const char *)k->bytes + head, (char *)c->raw,
                               (int)(k->size - head),
                               sizeof(c->raw)) == (int)p->size;
}

static bool read_piece(struct remote_client *c, const struct remote_kept *k,
                       struct remote_piece *p)
{
    const struct remote_data *d = (const struct remote_data *)k->bytes;
    size_t head = sizeof(*d) + d->counters * sizeof(uint32_t);

    *p = (struct remote_piece){ .channel = d->channel,
                                .offset = d->offset,
                                .size = d->raw_size,
                                .first = d->first,
                                .counters = d->counters };
    if (d->channel >= REMOTE_CHANNELS || d->counters > REMOTE_COUNTERS ||
        head > k->size || (d->first != REMOTE_NONE && d->first > d->raw_size))
        return false;
    for (unsigned i = 0; i < d->counters; i++) {
        uint32_t value;
        memcpy(&value, (const uint8_t *)(d + 1) + i * sizeof(value),
               sizeof(value));
        p->counted[i] = value;
    }
    return unpack(c, k, head, p) &&
           (p->channel != REMOTE_END || p->size == sizeof(c->end));
}

// Delivers the next datagram, or counts it as lost.
static void deliver(struct remote_client *c, uint64_t now)
{
    struct remote_kept *k = kept_of(c, c->next);
    struct remote_piece p;

    c->next++;
    if (k->size == 0) {
        c->lost++;
        return;
    }
    if (!read_piece(c, k, &p)) {
        c->corrupt++;
    } else if (p.channel == REMOTE_END) {
        memcpy(&c->end, p.bytes, sizeof(c->end));
        c->state = REMOTE_ENDED;
    } else {
        c->take(c->arg, &p);
    }
    k->size = 0;
    if (c->state == REMOTE_ENDED)
        put_report(c, now);
}

static void take_data(struct remote_client *c, const void *bytes, size_t size,
                      uint64_t now)
{
    const struct remote_data *d = bytes;

    if (size < sizeof(*d) || d->oldest > d->number ||
        d->number - d->oldest >= REMOTE_WINDOW) {
        c->corrupt++;
        return;
    }
    if (d->oldest > c->oldest)
        c->oldest = d->oldest;
    // The server has forgotten these; at most the window has come of them.
    for (uint32_t i = 0; c->next < c->oldest && i < REMOTE_WINDOW; i++)
        deliver(c, now);
    if (c->next < c->oldest) {
        c->lost += c->oldest - c->next;
        c->next = c->oldest;
    }
    // The next ones are within the window, as `oldest` is at most `next`.
    struct remote_kept *k = kept_of(c, d->number);
    if (d->number < c->next || k->size > 0) {
        c->twice++;
        if (c->state == REMOTE_ENDED)
            put_report(c, now);
        return;
    }
    memcpy(k->bytes, bytes, size);
    k->size = (uint16_t)size;
    c->come++;
    c->bytes += size + REMOTE_CODE;
    while (c->state == REMOTE_GETS && kept_of(c, c->next)->size > 0)
        deliver(c, now);
}

// --- the session ------------------------------------------------------------

static void take_challenge(struct remote_client *c, const void *bytes,
                           size_t size, uint64_t now)
{
    const struct remote_challenge *m = bytes;

    if (c->state != REMOTE_ASKS || size != sizeof(*m) ||
        m->head.session != c->nonce)
        return;
    c->session = m->next;
    c->state = REMOTE_STARTS;
    c->tries = 0;
    put_start(c, now);
}

static void take_refused(struct remote_client *c, const void *bytes,
                         size_t size)
{
    const struct remote_refused *m = bytes;
    size_t length = size - sizeof(*m);

    if (m->head.session != c->nonce || length > REMOTE_TEXT_MAX ||
        (c->state != REMOTE_ASKS && c->state != REMOTE_STARTS))
        return;
    memcpy(c->why, m->text, length);
    c->why[length] = '\0';
    c->state = REMOTE_DENIED;
}

static void take_of_session(struct remote_client *c, const void *bytes,
                            size_t size, uint64_t now)
{
    const struct remote_head *h = bytes;

    if (c->session == 0 || h->session != c->session || c->state > REMOTE_ENDED)
        return;
    if (c->state < REMOTE_GETS)
        c->state = REMOTE_GETS;
    c->heard_ms = now;
    if (h->type == REMOTE_DATA)
        take_data(c, bytes, size, now);
}

void remote_client_take(struct remote_client *c, const void *datagram,
                        size_t size, uint64_t now)
{
    const struct remote_head *h = datagram;

    size = remote_check(c->key, datagram, size);
    if (size == 0) {
        c->rejected++;
        return;
    }
    switch (h->type) {
    case REMOTE_CHALLENGE:
        take_challenge(c, datagram, size, now);
        break;
    case REMOTE_REFUSED:
        take_refused(c, datagram, size);
        break;
    case REMOTE_STARTED:
    case REMOTE_DATA:
        take_of_session(c, datagram, size, now);
        break;
    }
}

// Asks, or asks again.
static void begin(struct remote_client *c, uint64_t now)
{
    if (c->began_ms == 0)
        c->began_ms = c->heard_ms = now;
    else if (now - c->said_ms < ASK_MS)
        return;
    if (c->state == REMOTE_STARTS && c->tries == START_TRIES)
        c->state = REMOTE_ASKS;
    if (c->state == REMOTE_ASKS)
        put_hello(c, now);
    else
        put_start(c, now);
}

void remote_client_tick(struct remote_client *c, uint64_t now)
{
    if (c->state > REMOTE_GETS)
        return;
    if (c->began_ms != 0 && now - c->heard_ms > REMOTE_SILENCE_MS)
        c->state = REMOTE_SILENT;
    else if (c->state < REMOTE_GETS)
        begin(c, now);
    else if (now - c->said_ms >= c->report_ms)
        put_report(c, now);
}

void remote_client_stop(struct remote_client *c, uint64_t now)
{
    c->stop = true;
    if (c->state == REMOTE_GETS)
        put_report(c, now);
}
