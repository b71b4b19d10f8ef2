// Handles BEGIN, DATA and END (transfer.h).
#include "user/libtransfer/receiver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/crc32.h"

static void put(struct receiver *r, char type, const void *payload, size_t size)
{
    uint8_t frame[FRAME_MAX];

    r->put(r->line, frame, frame_encode(frame, type, payload, size));
}

// Sends an answer that consists of the file's id only.
static void put_id(struct receiver *r, char type, uint32_t id)
{
    uint8_t payload[ID_SIZE];

    frame_put_number(payload, id, ID_SIZE);
    put(r, type, payload, sizeof(payload));
}

static void put_start(struct receiver *r)
{
    uint8_t payload[START_SIZE];

    frame_put_number(payload, r->id, ID_SIZE);
    frame_put_number(payload + START_OFFSET, r->received, 8);
    put(r, TRANSFER_START, payload, sizeof(payload));
}

static void put_ack(struct receiver *r, uint64_t turn)
{
    uint8_t payload[ACK_SIZE];

    frame_put_number(payload, r->id, ID_SIZE);
    frame_put_number(payload + DATA_TURN, turn, 4);
    frame_put_number(payload + DATA_OFFSET, r->received, 8);
    put(r, TRANSFER_ACK, payload, sizeof(payload));
}

static void notify(struct receiver *r,
                   void (*callback)(void *user, const struct receiver *r))
{
    if (callback)
        callback(r->user, r);
}

static void refuse(struct receiver *r, uint32_t id, const char *problem)
{
    uint8_t payload[ID_SIZE + TRANSFER_TEXT_MAX];

    r->state = RECEIVER_IDLE;
    store_close(&r->store);
    snprintf(r->problem, sizeof(r->problem), "%s", problem);
    frame_put_number(payload, id, ID_SIZE);
    memcpy(payload + ID_SIZE, r->problem, strlen(r->problem));
    put(r, TRANSFER_REFUSED, payload, ID_SIZE + strlen(r->problem));
    notify(r, r->ended);
}

// Opens the part of an announced file that exists already, or a new one.
static int begin_file(struct receiver *r, const char *name)
{
    if (store_has(&r->store, name, r->size, r->crc_wanted)) {
        r->received = r->size;
        r->state = RECEIVER_HAS;
        return 0;
    }
    if (store_open(&r->store, name, r->id, &r->received, &r->crc) < 0)
        return -1;
    if (r->received > r->size) {
        r->received = r->crc = 0;
        if (store_empty(&r->store) < 0)
            return -1;
    }
    r->state = RECEIVER_TAKES;
    return 0;
}

static void take_begin(struct receiver *r, const struct frame *f)
{
    char name[TRANSFER_NAME_MAX + 1];
    size_t length = f->size - BEGIN_NAME;
    uint32_t id = crc32(0, f->payload, f->size);
    const char *problem;

    if (f->size < BEGIN_NAME)
        return;
    if (r->state != RECEIVER_IDLE && r->id == id) {
        put_start(r);
        return;
    }
    problem = store_name_problem((const char *)f->payload + BEGIN_NAME, length);
    if (problem) {
        r->store.name[0] = '\0';
        refuse(r, id, problem);
        return;
    }
    memcpy(name, f->payload + BEGIN_NAME, length);
    name[length] = '\0';
    store_close(&r->store);
    r->id = id;
    r->size = frame_number(f->payload, BEGIN_CRC);
    r->crc_wanted = (uint32_t)frame_number(f->payload + BEGIN_CRC, 4);
    if (begin_file(r, name) < 0) {
        refuse(r, id, strerror(errno));
        return;
    }
    r->resumed = r->received;
    r->problem[0] = '\0';
    notify(r, r->state == RECEIVER_HAS ? r->ended : r->began);
    put_start(r);
}

static void take_data(struct receiver *r, const struct frame *f)
{
    size_t count = f->size - DATA_BYTES;
    const uint8_t *bytes = f->payload + DATA_BYTES;

    if (f->size < DATA_BYTES)
        return;
    if (r->state == RECEIVER_TAKES &&
        frame_number(f->payload + DATA_OFFSET, 8) == r->received &&
        count <= r->size - r->received) {
        if (store_append(&r->store, r->received, bytes, count) < 0) {
            refuse(r, r->id, strerror(errno));
            return;
        }
        r->crc = crc32(r->crc, bytes, count);
        r->received += count;
    }
    put_ack(r, frame_number(f->payload + DATA_TURN, 4));
}

static void take_end(struct receiver *r)
{
    if (r->state == RECEIVER_TAKES && r->received == r->size &&
        r->crc == r->crc_wanted) {
        if (store_finish(&r->store, r->size, r->crc) < 0) {
            refuse(r, r->id, strerror(errno));
            return;
        }
        r->state = RECEIVER_HAS;
        notify(r, r->ended);
    }
    if (r->state == RECEIVER_HAS) {
        put_id(r, TRANSFER_DONE, r->id);
        return;
    }
    // The checksum is wrong: the part from an earlier run is invalid, or the
    // file has changed.
    if (r->received == r->size) {
        r->received = r->crc = r->resumed = 0;
        if (store_empty(&r->store) < 0) {
            refuse(r, r->id, strerror(errno));
            return;
        }
    }
    put_id(r, TRANSFER_AGAIN, r->id);
}

void receiver_take(void *receiver, const struct frame *f)
{
    struct receiver *r = receiver;
    uint32_t id;

    if (f->type == TRANSFER_BEGIN) {
        take_begin(r, f);
        return;
    }
    if (f->size < ID_SIZE ||
        (f->type != TRANSFER_DATA && f->type != TRANSFER_END))
        return;
    id = (uint32_t)frame_number(f->payload, ID_SIZE);
    if (r->state == RECEIVER_IDLE || id != r->id)
        put_id(r, TRANSFER_AGAIN, id);
    else if (f->type == TRANSFER_DATA)
        take_data(r, f);
    else
        take_end(r);
}
