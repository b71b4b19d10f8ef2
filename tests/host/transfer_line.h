// Both ends of a transfer, and between them a line that changes, loses and
// repeats bytes, and breaks. The receiver stores files in a temporary folder.
#pragma once

#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/crc32.h"
#include "user/libtransfer/receiver.h"
#include "user/libtransfer/sender.h"

#define QUEUE_SIZE (1 << 20)
#define FILE_MAX 60000
#define TIMEOUTS_MAX 20000 // of one transfer, before it counts as stuck

// The bytes in transit in one direction. `fault`: one byte in so many is
// changed, lost or repeated; 0: none.
struct way {
    u8 bytes[QUEUE_SIZE];
    size_t used;
    u32 fault;
    bool broken;
};

static struct way to_receiver, to_sender;

static inline void push(struct way *w, u8 byte)
{
    assert_true(w->used < QUEUE_SIZE);
    w->bytes[w->used++] = byte;
}

static inline void put(void *line, const u8 *frame, size_t size)
{
    struct way *w = line;

    for (size_t i = 0; i < size && !w->broken; i++) {
        u32 kind = 3;
        if (w->fault != 0 && random_below(w->fault) == 0)
            kind = random_below(3);
        if (kind == 0)
            continue;
        push(w, kind == 1 ? frame[i] ^ (u8)(1u << random_below(8)) : frame[i]);
        if (kind == 2)
            push(w, frame[i]);
    }
}

// Delivers some of the bytes in transit. Returns false if there are none.
static inline bool deliver(struct way *w, struct frame_reader *r,
                           void (*take)(void *to, const struct frame *f),
                           void *to)
{
    static u8 piece[QUEUE_SIZE];
    size_t count = MIN(w->used, (size_t)1 + random_below(3000));

    if (count == 0)
        return false;
    memcpy(piece, w->bytes, count);
    w->used -= count;
    memmove(w->bytes, w->bytes + count, w->used);
    frame_feed(r, piece, count, take, to);
    return true;
}

// ---- the two ends

static int folder;
static char folder_name[] = "/tmp/strobe-transfer-XXXXXX";
static struct sender sender;
static struct receiver receiver;
static struct frame_reader at_sender, at_receiver;
static u8 content[FILE_MAX];

static inline void start_sender(int file)
{
    sender = (struct sender){ .put = put, .line = &to_receiver, .file = file };
    at_sender.used = 0;
    assert_int_equal(sender_start(&sender, "data"), 0);
}

static inline void start_receiver(void)
{
    store_close(&receiver.store);
    receiver = (struct receiver){
        .put = put,
        .line = &to_sender,
        .store = { .directory = folder, .part = -1 },
    };
    at_receiver.used = 0;
}

static inline int make_file(size_t size)
{
    FILE *file = tmpfile();
    int fd;

    for (size_t i = 0; i < size; i++)
        content[i] = (u8)random_u64();
    assert_non_null(file);
    fd = dup(fileno(file));
    fclose(file);
    assert_int_equal(write(fd, content, size), size);
    return fd;
}

static inline u32 empty_folder(void)
{
    DIR *d = fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY));
    struct dirent *e;
    u32 found = 0;

    while ((e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        unlinkat(folder, e->d_name, 0);
        found++;
    }
    closedir(d);
    return found;
}

static inline void assert_arrived(const char *name, size_t size)
{
    static u8 got[FILE_MAX + 1];
    int fd = openat(folder, name, O_RDONLY);

    assert_true(fd >= 0);
    assert_int_equal(read(fd, got, sizeof(got)), size);
    assert_memory_equal(got, content, size);
    close(fd);
}

// One step: bytes arrive, or the line is silent for a while. Returns whether it
// was silent.
static inline bool step(void)
{
    bool moved = deliver(&to_receiver, &at_receiver, receiver_take, &receiver);

    moved |= deliver(&to_sender, &at_sender, sender_take, &sender);
    if (moved)
        return false;
    frame_idle(&at_receiver, receiver_take, &receiver);
    frame_idle(&at_sender, sender_take, &sender);
    if (to_receiver.used == 0 && to_sender.used == 0)
        sender_timeout(&sender);
    return true;
}

static inline u32 run_to_the_end(void)
{
    u32 silent = 0;

    while (sender.state != SENDER_DONE && sender.state != SENDER_FAILED) {
        silent += step();
        assert_true(silent < TIMEOUTS_MAX);
    }
    return silent;
}

static inline void set_line(u32 fault)
{
    to_receiver = (struct way){ .fault = fault };
    to_sender = (struct way){ .fault = fault };
}

static inline int begin(size_t size, u32 fault)
{
    int fd = make_file(size);

    set_line(fault);
    empty_folder();
    start_receiver();
    start_sender(fd);
    return fd;
}

// ---- set-up and tear-down of all tests

static inline int set_up(void **state UNUSED)
{
    receiver.store.part = -1;
    if (mkdtemp(folder_name) == NULL)
        return -1;
    folder = open(folder_name, O_RDONLY | O_DIRECTORY);
    return folder < 0 ? -1 : 0;
}

static inline int tear_down(void **state UNUSED)
{
    store_close(&receiver.store);
    empty_folder();
    close(folder);
    return rmdir(folder_name);
}
