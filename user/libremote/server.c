#include "user/libremote/server.h"

#include <lz4.h>
#include <stdio.h>
#include <string.h>

#define RESENT_MAX 32 // datagrams, for one REPORT
#define QUIET_MS 1000 // after which a REPORT is answered
// What nothing came after may be under way still: it is given more time.
#define TAIL_FACTOR 3

// --- sending ----------------------------------------------------------------

static void put(struct remote_server *s, bool client, void *datagram,
                size_t size)
{
    s->send(s->arg, client, datagram, remote_seal(s->key, datagram, size));
}

static void challenge(struct remote_server *s, uint64_t nonce)
{
    uint8_t room[sizeof(struct remote_challenge) + REMOTE_CODE];
    struct remote_challenge *c = (struct remote_challenge *)room;

    while (s->next_session == 0 || s->next_session == s->session)
        s->random(s->arg, &s->next_session, sizeof(s->next_session));
    remote_head_make(room, REMOTE_CHALLENGE, nonce);
    c->next = s->next_session;
    put(s, false, room, sizeof(*c));
}

static void refuse(struct remote_server *s, uint64_t nonce, const char *why)
{
    uint8_t room[sizeof(struct remote_head) + REMOTE_TEXT_MAX + REMOTE_CODE];
    size_t size = strlen(why);

    remote_head_make(room, REMOTE_REFUSED, nonce);
    memcpy(room + sizeof(struct remote_head), why, size);
    put(s, false, room, sizeof(struct remote_head) + size);
}

static void put_started(struct remote_server *s, uint64_t now)
{
    uint8_t room[sizeof(struct remote_started) + REMOTE_CODE];
    struct remote_started *a = (struct remote_started *)room;

    remote_head_make(room, REMOTE_STARTED, s->session);
    a->nonce = s->nonce;
    put(s, false, room, sizeof(*a));
    s->said_ms = now;
}

static struct remote_slot *slot_of(struct remote_server *s, uint32_t number)
{
    return &s->slots[number % REMOTE_WINDOW];
}

static uint32_t oldest(const struct remote_server *s)
{
    return s->number > REMOTE_WINDOW ? s->number - REMOTE_WINDOW : 0;
}

static void send_slot(struct remote_server *s, struct remote_slot *slot,
                      uint64_t now)
{
    slot->sent_ms = s->said_ms = now;
    s->sent_bytes += slot->size;
    s->send(s->arg, true, slot->bytes, slot->size);
}

// --- the channels' data -----------------------------------------------------

// Whether the next datagram may take the slot of the one that was there.
static bool has_room(const struct remote_server *s)
{
    uint32_t forgotten = s->number - REMOTE_WINDOW;

    if (s->ahead_max > 0)
        return s->number - s->acked < s->ahead_max;
    return s->number < REMOTE_WINDOW || forgotten < s->acked ||
           forgotten >= s->protected;
}

// Begins the next datagram. The caller appends and calls finish().
static struct remote_data *begin(struct remote_server *s, uint8_t channel)
{
    struct remote_slot *slot = slot_of(s, s->number);
    struct remote_data *d = (struct remote_data *)slot->bytes;

    *d = (struct remote_data){ .number = s->number, .channel = channel };
    remote_head_make(d, REMOTE_DATA, s->session);
    slot->come = false;
    s->number++;
    d->oldest = oldest(s);
    return d;
}

static void finish(struct remote_server *s, struct remote_data *d, size_t size,
                   uint64_t now)
{
    struct remote_slot *slot = slot_of(s, d->number);

    slot->size = (uint16_t)remote_seal(s->key, slot->bytes, size);
    send_slot(s, slot, now);
}

// Packs the beginning of `raw` into `room` bytes; as it is, if that is not
// longer. Returns the size, and how much was packed in *count.
static size_t pack(const struct remote_channel_raw *raw, uint8_t *out,
                   size_t room, size_t *count, bool *packed)
{
    int from = (int)raw->used;
    int size = LZ4_compress_destSize((const char *)raw->bytes, (char *)out,
                                     &from, (int)room);

    *packed = size > 0 && size < from;
    *count = *packed ? (size_t)from : raw->used < room ? raw->used : room;
    if (*packed)
        return (size_t)size;
    memcpy(out, raw->bytes, *count);
    return *count;
}

static size_t put_counters(const struct remote_server *s, uint8_t *out,
                           const struct records_piece *piece)
{
    uint32_t count = s->records.events + 1;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t value = (uint32_t)piece->counted[i];
        memcpy(out + i * sizeof(value), &value, sizeof(value));
    }
    return count;
}

// Samples were sent, so that what comes may be lost.
static bool has_samples(const struct remote_server *s)
{
    for (unsigned i = 1; i < REMOTE_COUNTERS; i++) {
        if (s->records.counted[i] > 0)
            return true;
    }
    return false;
}

static void send_piece(struct remote_server *s, uint8_t channel, uint64_t now)
{
    struct remote_channel_raw *raw = &s->channels[channel];
    struct records_piece piece = { .first = 0 };
    bool early = !has_samples(s), packed;
    struct remote_data *d = begin(s, channel);
    uint8_t *at = (uint8_t *)(d + 1);
    size_t counters =
        channel == REMOTE_FILE ? (s->records.events + 1) * sizeof(uint32_t) : 0;
    size_t room = REMOTE_DATAGRAM_MAX - REMOTE_CODE - sizeof(*d) - counters,
           count;
    size_t size = pack(raw, at + counters, room, &count, &packed);

    if (early)
        s->protected = s->number;
    d->offset = raw->offset;
    d->raw_size = (uint16_t)count;
    d->packed = packed;
    if (channel == REMOTE_FILE) {
        bool known = s->records.headed;
        records_read(&s->records, raw->bytes, count, &piece);
        // Room for counters was left only if their number was known.
        d->counters = known ? put_counters(s, at, &piece) : 0;
        if (!known)
            memmove(at, at + counters, size);
        counters = d->counters * sizeof(uint32_t);
    }
    d->first = piece.first;
    finish(s, d, sizeof(*d) + counters + size, now);
    raw->used -= count;
    raw->offset += count;
    s->raw_bytes += count;
    memmove(raw->bytes, raw->bytes + count, raw->used);
}

uint8_t *remote_server_room(struct remote_server *s,
                            enum remote_channel channel, size_t *room)
{
    struct remote_channel_raw *raw = &s->channels[channel];

    *room = sizeof(raw->bytes) - raw->used;
    return raw->bytes + raw->used;
}

void remote_server_added(struct remote_server *s, enum remote_channel channel,
                         size_t size, uint64_t now)
{
    struct remote_channel_raw *raw = &s->channels[channel];

    raw->used += size;
    if (raw->used == sizeof(raw->bytes) && has_room(s))
        send_piece(s, channel, now);
}

bool remote_server_flush(struct remote_server *s, uint64_t now)
{
    for (uint8_t channel = 0; channel < REMOTE_END; channel++) {
        while (s->channels[channel].used > 0 && has_room(s))
            send_piece(s, channel, now);
        if (s->channels[channel].used > 0)
            return false;
    }
    return has_room(s);
}

void remote_server_end(struct remote_server *s, struct remote_end *end,
                       uint64_t now)
{
    for (unsigned i = 0; i < REMOTE_END; i++)
        end->size[i] = s->channels[i].offset;
    memcpy(end->counted, s->records.counted, sizeof(end->counted));
    end->datagrams = s->number;
    end->resent = s->resent;
    end->raw_bytes = s->raw_bytes;
    end->sent_bytes = s->sent_bytes;
    end->elapsed_ns = (now - s->began_ms) * 1000000;

    struct remote_data *d = begin(s, REMOTE_END);
    d->raw_size = sizeof(*end);
    memcpy(d + 1, end, sizeof(*end));
    s->state = REMOTE_ENDING;
    finish(s, d, sizeof(*d) + sizeof(*end), now);
}

// --- taking -----------------------------------------------------------------

// Whether the words are some, each ended by a NUL.
static bool take_words(struct remote_server *s, const struct remote_start *m,
                       size_t size)
{
    size_t words = size - sizeof(*m);

    if (words > sizeof(s->words) || (words > 0 && m->words[words - 1] != '\0'))
        return false;
    memcpy(s->words, m->words, words);
    s->words_size = words;
    s->kind = m->kind;
    return m->kind == REMOTE_RECORD || m->kind == REMOTE_TOP;
}

static enum remote_event begin_session(struct remote_server *s,
                                       const struct remote_start *m,
                                       uint64_t now)
{
    s->state = REMOTE_RUNNING;
    s->session = m->head.session;
    s->next_session = 0;
    s->nonce = m->nonce;
    s->counter = s->number = s->acked = s->protected = 0;
    s->resent = s->raw_bytes = s->sent_bytes = 0;
    s->heard_ms = s->began_ms = now;
    s->records = (struct records){ 0 };
    for (unsigned i = 0; i < REMOTE_END; i++)
        s->channels[i].used = s->channels[i].offset = 0;
    put_started(s, now);
    return REMOTE_BEGIN;
}

static enum remote_event take_start(struct remote_server *s, const void *bytes,
                                    size_t size, uint64_t now)
{
    const struct remote_start *m = bytes;

    if (size < sizeof(*m))
        return REMOTE_NOTHING;
    if (s->state != REMOTE_IDLE && m->head.session == s->session &&
        m->nonce == s->nonce) {
        put_started(s, now); // the first one was lost
        return REMOTE_HEARD;
    }
    if (s->next_session == 0 || m->head.session != s->next_session ||
        s->state == REMOTE_RUNNING)
        return REMOTE_NOTHING;
    if (!take_words(s, m, size)) {
        refuse(s, m->nonce, "the request is not understood");
        return REMOTE_NOTHING;
    }
    return begin_session(s, m, now);
}

// The number after the last one that has come.
static uint32_t come_up_to(const struct remote_report *r)
{
    uint32_t bit = REMOTE_REPORTED;

    while (bit > 0 && !(r->come[(bit - 1) / 8] >> (bit - 1) % 8 & 1))
        bit--;
    return r->next + bit;
}

// Sends what has not come and was not sent lately.
static void resend(struct remote_server *s, const struct remote_report *r,
                   uint64_t now)
{
    uint32_t from = s->acked > oldest(s) ? s->acked : oldest(s);
    uint32_t passed = come_up_to(r);

    for (uint32_t n = from, sent = 0; n < s->number && sent < RESENT_MAX; n++) {
        struct remote_slot *slot = slot_of(s, n);
        uint32_t bit = n - r->next;

        if (bit < REMOTE_REPORTED && r->come[bit / 8] >> bit % 8 & 1)
            slot->come = true;
        uint64_t patience =
            (uint64_t)s->resend_ms * (n < passed ? 1 : TAIL_FACTOR);
        if (slot->come || now - slot->sent_ms < patience)
            continue;
        send_slot(s, slot, now);
        s->resent++;
        sent++;
    }
}

static enum remote_event take_report(struct remote_server *s, const void *bytes,
                                     size_t size, uint64_t now)
{
    const struct remote_report *r = bytes;

    if (size != sizeof(*r) || s->state == REMOTE_IDLE ||
        r->head.session != s->session || r->counter <= s->counter ||
        r->next > s->number)
        return REMOTE_NOTHING;
    s->counter = r->counter;
    s->heard_ms = now;
    if (r->next > s->acked)
        s->acked = r->next;
    if (s->state == REMOTE_ENDING && s->acked == s->number) {
        s->state = REMOTE_IDLE;
        return REMOTE_HEARD;
    }
    resend(s, r, now);
    if (now - s->said_ms >= QUIET_MS)
        put_started(s, now);
    return r->stop && s->state == REMOTE_RUNNING ? REMOTE_STOP : REMOTE_HEARD;
}

enum remote_event remote_server_take(struct remote_server *s,
                                     const void *datagram, size_t size,
                                     uint64_t now)
{
    const struct remote_head *h = datagram;

    size = remote_check(s->key, datagram, size);
    if (size == 0)
        return REMOTE_REJECTED;
    switch (h->type) {
    case REMOTE_HELLO:
        if (size != sizeof(struct remote_hello))
            return REMOTE_REJECTED;
        if (s->state == REMOTE_RUNNING && h->session == s->nonce)
            put_started(s, now); // its client has heard nothing yet
        else if (s->state == REMOTE_RUNNING)
            refuse(s, h->session, "another session is running there");
        else
            challenge(s, h->session);
        return REMOTE_NOTHING;
    case REMOTE_START:
        return take_start(s, datagram, size, now);
    case REMOTE_REPORT:
        return take_report(s, datagram, size, now);
    }
    return REMOTE_NOTHING;
}

bool remote_server_tick(struct remote_server *s, uint64_t now)
{
    if (s->state == REMOTE_IDLE || now - s->heard_ms <= REMOTE_SILENCE_MS)
        return false;
    s->state = REMOTE_IDLE;
    return true;
}
