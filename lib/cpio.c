// The newc header is 110 characters: the magic and thirteen numbers of eight
// hexadecimal digits. Name and data are each padded to a multiple of four,
// counted from the archive's start.
#include "lib/cpio.h"

#include "lib/assert.h"
#include "lib/string.h"

#define MAGIC_LENGTH 6
#define NUMBER_LENGTH 8
#define HEADER_LENGTH 110
#define ALIGNMENT 4

static const char trailer[] = "TRAILER!!!";

// The header's numbers, in order.
enum number {
    INO,
    MODE,
    UID,
    GID,
    NLINK,
    MTIME,
    FILE_SIZE,
    DEV_MAJOR,
    DEV_MINOR,
    RDEV_MAJOR,
    RDEV_MINOR,
    NAME_SIZE,
    CHECK,
    NUMBERS
};

_Static_assert(MAGIC_LENGTH + NUMBERS * NUMBER_LENGTH == HEADER_LENGTH, "newc");

static int digit_value(u8 c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool parse_number(const u8 *text, u32 *value)
{
    *value = 0;
    for (u32 i = 0; i < NUMBER_LENGTH; i++) {
        int digit = digit_value(text[i]);
        if (digit < 0)
            return false;
        *value = *value << 4 | (u32)digit;
    }
    return true;
}

static bool parse_header(const u8 *header, u32 *numbers)
{
    if (memcmp(header, "070701", MAGIC_LENGTH) != 0 &&
        memcmp(header, "070702", MAGIC_LENGTH) != 0)
        return false;
    for (u32 i = 0; i < NUMBERS; i++) {
        if (!parse_number(header + MAGIC_LENGTH + i * NUMBER_LENGTH,
                          &numbers[i]))
            return false;
    }
    return true;
}

// Archives are padded with zeros, up to a block or a page.
static size_t skip_zeros(const u8 *archive, size_t size, size_t pos)
{
    while (pos < size && archive[pos] == 0)
        pos++;
    return pos;
}

// Locates the entry's parts; 64-bit, because the header's sizes are not
// trusted.
static enum cpio_result parse_entry(const u8 *archive, size_t size,
                                    size_t start, struct cpio_entry *e,
                                    u64 *end)
{
    u32 n[NUMBERS];
    if (size - start < HEADER_LENGTH) {
        size_t there = MIN(size - start, (size_t)MAGIC_LENGTH - 1);
        return memcmp(archive + start, "070701", there) ? CPIO_CORRUPT
                                                        : CPIO_TRUNCATED;
    }
    if (!parse_header(archive + start, n) || n[NAME_SIZE] == 0)
        return CPIO_CORRUPT;
    u64 name = (u64)start + HEADER_LENGTH;
    u64 data = ALIGN_UP(name + n[NAME_SIZE], (u64)ALIGNMENT);
    *end = data + n[FILE_SIZE];
    if (data > size || *end > size)
        return CPIO_TRUNCATED;
    if (archive[name + n[NAME_SIZE] - 1] != '\0')
        return CPIO_CORRUPT;
    *e = (struct cpio_entry){
        .name = (const char *)archive + name,
        .data = archive + data,
        .size = n[FILE_SIZE],
        .ino = n[INO],
        .mode = n[MODE],
        .uid = n[UID],
        .gid = n[GID],
        .nlink = n[NLINK],
        .mtime = n[MTIME],
        .dev_major = n[DEV_MAJOR],
        .dev_minor = n[DEV_MINOR],
        .rdev_major = n[RDEV_MAJOR],
        .rdev_minor = n[RDEV_MINOR],
    };
    return CPIO_ENTRY;
}

enum cpio_result cpio_next(const u8 *archive, size_t size, size_t *pos,
                           struct cpio_entry *e)
{
    assert(*pos <= size);
    bool complete = false; // the data before is an archive with its trailer
    for (;;) {
        size_t start = skip_zeros(archive, size, *pos);
        if (start >= size)
            return complete ? CPIO_END : CPIO_TRUNCATED;
        *pos = start;
        u64 end;
        enum cpio_result result = parse_entry(archive, size, start, e, &end);
        if (result != CPIO_ENTRY)
            return result;
        // The last entry's padding may be missing.
        *pos = (size_t)MIN(ALIGN_UP(end, (u64)ALIGNMENT), (u64)size);
        if (strcmp(e->name, trailer) != 0)
            return CPIO_ENTRY;
        complete = true;
    }
}
