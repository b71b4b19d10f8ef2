// Stores the files of a transfer in a directory, by names relative to it.
#include "user/libtransfer/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/crc32.h"

#define PIECE 65536
#define COPIES_MAX 1000 // of one name

const char *store_name_problem(const char *name, size_t length)
{
    if (length == 0 || length > TRANSFER_NAME_MAX)
        return "the name is empty or too long";
    if (name[0] == '.')
        return "the name begins with a dot: rename the file";
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];

        if (c == '/')
            return "the name leads to another directory";
        if (c < ' ' || c == 0x7f)
            return "there are control characters in the name";
    }
    return NULL;
}

// Computes the size and the checksum of the readable part of a file.
static int measure(int file, uint64_t *size, uint32_t *crc)
{
    uint8_t piece[PIECE];
    ssize_t got;

    *size = *crc = 0;
    while ((got = pread(file, piece, sizeof(piece), (off_t)*size)) > 0) {
        *crc = crc32(*crc, piece, (size_t)got);
        *size += (uint64_t)got;
    }
    return got < 0 ? -1 : 0;
}

int store_open(struct store *s, const char *name, uint32_t id,
               uint64_t *received, uint32_t *crc)
{
    store_close(s);
    snprintf(s->name, sizeof(s->name), "%s", name);
    snprintf(s->part_name, sizeof(s->part_name), ".%s.%08" PRIx32 ".part",
             s->name, id);
    s->part = openat(s->directory, s->part_name,
                     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (s->part < 0)
        return -1;
    return measure(s->part, received, crc);
}

int store_append(struct store *s, uint64_t offset, const void *data,
                 size_t size)
{
    ssize_t written = pwrite(s->part, data, size, (off_t)offset);

    if (written == (ssize_t)size)
        return 0;
    if (written >= 0)
        errno = ENOSPC;
    return -1;
}

static bool is_same(struct store *s, const char *name, uint64_t size,
                    uint32_t crc)
{
    int file = openat(s->directory, name,
                      O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat about;
    uint64_t has_size;
    uint32_t has_crc;
    bool same = file >= 0 && fstat(file, &about) == 0 &&
                S_ISREG(about.st_mode) && (uint64_t)about.st_size == size &&
                measure(file, &has_size, &has_crc) == 0 && has_size == size &&
                has_crc == crc;

    if (file >= 0)
        close(file);
    return same;
}

// Sets `placed` to the file's name, or to that of its `copy`th variant. The
// callers try all variants in order, up to the first that does not exist.
static void name_copy(struct store *s, const char *name, int copy)
{
    if (copy == 1)
        snprintf(s->placed, sizeof(s->placed), "%s", name);
    else
        snprintf(s->placed, sizeof(s->placed), "%s.%d", name, copy);
}

bool store_has(struct store *s, const char *name, uint64_t size, uint32_t crc)
{
    for (int copy = 1; copy <= COPIES_MAX; copy++) {
        name_copy(s, name, copy);
        if (faccessat(s->directory, s->placed, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            return false;
        if (is_same(s, s->placed, size, crc))
            return true;
    }
    return false;
}

int store_empty(struct store *s)
{
    return ftruncate(s->part, 0);
}

// Creates an empty file under the first unused name, and sets `placed`.
static int reserve_name(struct store *s)
{
    for (int copy = 1; copy <= COPIES_MAX; copy++) {
        int file;

        name_copy(s, s->name, copy);
        file = openat(s->directory, s->placed,
                      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (file >= 0)
            return close(file);
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

int store_finish(struct store *s, uint64_t size, uint32_t crc)
{
    if (fsync(s->part) < 0)
        return -1;
    if (store_has(s, s->name, size, crc)) {
        unlinkat(s->directory, s->part_name, 0);
    } else if (reserve_name(s) < 0 || renameat(s->directory, s->part_name,
                                               s->directory, s->placed) < 0) {
        return -1;
    }
    store_close(s);
    return 0;
}

void store_close(struct store *s)
{
    if (s->part >= 0)
        close(s->part);
    s->part = -1;
}
