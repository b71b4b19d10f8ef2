// The pseudo-devices: null, zero, full, random, urandom, kmsg.
//
// None has a state of its own, so nothing is locked here.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/random.h"
#include "kernel/fs/text_file.h"
#include "kernel/mm/heap.h"
#include "kernel/task/signal.h"
#include "lib/set.h"
#include "lib/string.h"

#define MEMORY_MAJOR 1
#define RANDOM_CHUNK 256u
#define ZEROS_AT_ONCE KIB(64) // between two checks for signals
#define KMSG_TEXT_MAX KIB(64) // shown to a reader at most
#define KMSG_LINE_MAX 992u    // of one written line; Linux truncates there

static int discard(struct file *f UNUSED, struct io *io, u64 *pos UNUSED)
{
    int n = io->left;
    io->left = 0;
    return n;
}

static int read_nothing(struct file *f UNUSED, struct io *io UNUSED,
                        u64 *pos UNUSED)
{
    return 0;
}

static int read_zeros(struct file *f UNUSED, struct io *io, u64 *pos UNUSED)
{
    size_t wanted = io->left;
    int err = 0;
    while (io->left > 0 && !err && !(io->left < wanted && signal_fatal()))
        err = io_zero(io, MIN(io->left, ZEROS_AT_ONCE));
    return err && io->left == wanted ? err : (int)(wanted - io->left);
}

static int write_to_full(struct file *f UNUSED, struct io *io, u64 *pos UNUSED)
{
    return io->left > 0 ? -ENOSPC : 0;
}

static int read_random(struct file *f UNUSED, struct io *io, u64 *pos UNUSED)
{
    u8 buf[RANDOM_CHUNK];
    size_t wanted = io->left;
    int err = 0;
    while (io->left > 0 && !err && !signal_waiting()) {
        size_t n = MIN(io->left, sizeof(buf));
        random_bytes(buf, n);
        err = io_to(io, buf, n);
    }
    memset(buf, 0, sizeof(buf));
    if (io->left == wanted && wanted > 0)
        return err ? err : -ERESTARTSYS;
    return wanted - io->left;
}

// Written data is mixed in; it adds no entropy to the estimate.
static int write_random(struct file *f UNUSED, struct io *io, u64 *pos UNUSED)
{
    u32 words[RANDOM_CHUNK / sizeof(u32)];
    size_t wanted = io->left;
    int err = 0;
    while (io->left > 0 && !err && !signal_waiting()) {
        size_t n = MIN(io->left, sizeof(words));
        memset(words, 0, sizeof(words));
        err = io_from(io, words, n);
        for (u32 i = 0; !err && i < ARRAY_SIZE(words); i++)
            random_stir(words[i]);
    }
    if (io->left == wanted && wanted > 0)
        return err ? err : -ERESTARTSYS;
    return wanted - io->left;
}

// --- kmsg: reads give the log as of the first read; a written line is logged
// ---

static int open_log(struct file *f)
{
    assert(!f->data);
    f->data = text_file_create();
    return !f->data ? -ENOMEM : 0;
}

static int copy_log(struct chain *t, void *arg UNUSED)
{
    char *log = kmalloc(KMSG_TEXT_MAX);
    if (!log)
        return -ENOMEM;
    chain_append(t, log, log_read(log, KMSG_TEXT_MAX));
    kfree(log);
    return 0;
}

static int read_log(struct file *f, struct io *io, u64 *pos)
{
    return text_file_read(f->data, io, pos, copy_log, NULL);
}

// A "<6>" prefix is the priority; the log has one level only.
static const char *skip_level(const char *line)
{
    const char *end = line[0] == '<' ? strchr(line, '>') : NULL;
    return !end ? line : end + 1;
}

static int write_log(struct file *f UNUSED, struct io *io, u64 *pos UNUSED)
{
    char line[KMSG_LINE_MAX + 1];
    size_t wanted = io->left, n = MIN(wanted, KMSG_LINE_MAX);
    int err = io_from(io, line, n);
    if (err)
        return err;
    line[n] = '\0';
    if (n > 0 && line[n - 1] == '\n')
        line[n - 1] = '\0';
    log_printf("%s\n", skip_level(line));
    return wanted;
}

static void close_log(struct file *f)
{
    text_file_free(f->data);
}

// --- the table --------------------------------------------------------------

#define DEVICE(id, minor_number, permissions, ...)           \
    static const struct file_ops id##_ops = { __VA_ARGS__ }; \
    static const struct char_device id##_device = {          \
        .name = #id,                                         \
        .rdev = DEVICE_NUMBER(MEMORY_MAJOR, minor_number),   \
        .mode = permissions,                                 \
        .ops = &id##_ops,                                    \
    };                                                       \
    CHAR_DEVICE(id##_device)

DEVICE(null, 3, 0666, .read = read_nothing, .write = discard);
DEVICE(zero, 5, 0666, .read = read_zeros, .write = discard);
DEVICE(full, 7, 0666, .read = read_zeros, .write = write_to_full);
DEVICE(random, 8, 0666, .read = read_random, .write = write_random);
DEVICE(urandom, 9, 0666, .read = read_random, .write = write_random);

static const struct file_ops kmsg_ops = {
    .read = read_log,
    .write = write_log,
    .release = close_log,
};
static const struct char_device kmsg_device = {
    .name = "kmsg",
    .rdev = DEVICE_NUMBER(MEMORY_MAJOR, 11),
    .mode = 0600,
    .ops = &kmsg_ops,
    .open = open_log,
};
CHAR_DEVICE(kmsg_device);
