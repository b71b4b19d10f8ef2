// Sends BEGIN, DATA and END (transfer.h).
#include "user/libtransfer/sender.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/crc32.h"

// Limit of how often data is sent again after END. The receiver may be
// restarted, or may find at the end that an old part is invalid. Without a
// limit, a file that changes while it is sent would be sent for ever.
#define RESTARTS_MAX 2

static void put(struct sender *s, char type, const void *payload, size_t size)
{
    uint8_t frame[FRAME_MAX];

    s->put(s->line, frame, frame_encode(frame, type, payload, size));
}

static void put_begin(struct sender *s)
{
    put(s, TRANSFER_BEGIN, s->begin, s->begin_size);
}

static void put_end(struct sender *s)
{
    uint8_t payload[ID_SIZE];

    frame_put_number(payload, s->id, ID_SIZE);
    put(s, TRANSFER_END, payload, sizeof(payload));
}

static void give_up(struct sender *s, const char *problem)
{
    s->state = SENDER_FAILED;
    snprintf(s->problem, sizeof(s->problem), "%s", problem);
}

// Sends the data at `next`. Returns false if the file is shorter.
static bool put_data(struct sender *s)
{
    uint8_t payload[DATA_BYTES + TRANSFER_DATA_SIZE];
    uint64_t left = s->size - s->next;
    size_t count = left < TRANSFER_DATA_SIZE ? left : TRANSFER_DATA_SIZE;
    ssize_t got = pread(s->file, payload + DATA_BYTES, count, (off_t)s->next);

    if (got != (ssize_t)count) {
        give_up(s, got < 0 ? strerror(errno)
                           : "it has become shorter while it was sent");
        return false;
    }
    frame_put_number(payload, s->id, ID_SIZE);
    frame_put_number(payload + DATA_TURN, s->turn, 4);
    frame_put_number(payload + DATA_OFFSET, s->next, 8);
    put(s, TRANSFER_DATA, payload, DATA_BYTES + count);
    if (s->next < s->furthest)
        s->frames_resent++;
    s->next += count;
    if (s->next > s->furthest)
        s->furthest = s->next;
    return true;
}

// Sends as much as the window allows.
static void send_window(struct sender *s)
{
    uint64_t ahead = s->probing ? 1 : TRANSFER_WINDOW;

    while (s->next < s->size && s->next < s->acked + ahead) {
        if (!put_data(s))
            return;
    }
    if (s->acked == s->size) {
        s->state = SENDER_ENDS;
        s->ended = true;
        put_end(s);
    }
}

static void resend(struct sender *s)
{
    s->turn++;
    s->next = s->acked;
    send_window(s);
}

static int measure(int file, uint64_t *size, uint32_t *crc)
{
    uint8_t piece[TRANSFER_DATA_SIZE * 16];
    ssize_t got;

    *size = *crc = 0;
    while ((got = pread(file, piece, sizeof(piece), (off_t)*size)) > 0) {
        *crc = crc32(*crc, piece, (size_t)got);
        *size += (uint64_t)got;
    }
    return got < 0 ? -1 : 0;
}

int sender_start(struct sender *s, const char *name)
{
    size_t length = strlen(name);
    uint32_t crc;

    if (length > TRANSFER_NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (measure(s->file, &s->size, &crc) < 0)
        return -1;
    frame_put_number(s->begin, s->size, BEGIN_CRC);
    frame_put_number(s->begin + BEGIN_CRC, crc, 4);
    memcpy(s->begin + BEGIN_NAME, name, length);
    s->begin_size = BEGIN_NAME + length;
    s->id = crc32(0, s->begin, s->begin_size);
    s->state = SENDER_BEGINS;
    put_begin(s);
    return 0;
}

static void take_start(struct sender *s, const struct frame *f)
{
    uint64_t offset;

    if (s->state != SENDER_BEGINS || f->size != START_SIZE)
        return;
    offset = frame_number(f->payload + START_OFFSET, 8);
    if (offset > s->size)
        return;
    if (s->ended && offset < s->size && s->restarts++ == RESTARTS_MAX) {
        give_up(s, "its checksum is never right: does it change?");
        return;
    }
    s->ended = false;
    s->state = SENDER_SENDS;
    s->resumed = s->acked = offset;
    s->probing = false;
    resend(s);
}

static void take_ack(struct sender *s, const struct frame *f)
{
    uint64_t offset;

    if (s->state != SENDER_SENDS || f->size != ACK_SIZE)
        return;
    offset = frame_number(f->payload + DATA_OFFSET, 8);
    if (offset < s->acked || offset > s->furthest)
        return;
    if (offset == s->acked) {
        if (frame_number(f->payload + DATA_TURN, 4) == s->turn)
            resend(s);
        return;
    }
    s->acked = offset;
    s->probing = false;
    if (s->next < offset)
        s->next = offset;
    send_window(s);
}

static void take_again(struct sender *s)
{
    if (s->state == SENDER_BEGINS)
        return;
    s->state = SENDER_BEGINS;
    put_begin(s);
}

static void take_refusal(struct sender *s, const struct frame *f)
{
    char text[sizeof(s->problem)];
    size_t length = f->size - ID_SIZE;

    if (length > TRANSFER_TEXT_MAX)
        length = TRANSFER_TEXT_MAX;
    memcpy(text, f->payload + ID_SIZE, length);
    text[length] = '\0';
    for (size_t i = 0; i < length; i++) {
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
    }
    give_up(s, text);
}

void sender_take(void *sender, const struct frame *f)
{
    struct sender *s = sender;

    if (f->size < ID_SIZE || frame_number(f->payload, ID_SIZE) != s->id)
        return;
    if (s->state == SENDER_DONE || s->state == SENDER_FAILED)
        return;
    s->unanswered = 0;
    switch (f->type) {
    case TRANSFER_START:
        take_start(s, f);
        break;
    case TRANSFER_ACK:
        take_ack(s, f);
        break;
    case TRANSFER_DONE:
        if (s->state == SENDER_ENDS)
            s->state = SENDER_DONE;
        break;
    case TRANSFER_AGAIN:
        take_again(s);
        break;
    case TRANSFER_REFUSED:
        take_refusal(s, f);
        break;
    }
}

void sender_timeout(struct sender *s)
{
    s->unanswered++;
    switch (s->state) {
    case SENDER_BEGINS:
        put_begin(s);
        break;
    case SENDER_SENDS:
        s->probing = true;
        resend(s);
        break;
    case SENDER_ENDS:
        put_end(s);
        break;
    default:
        break;
    }
}
