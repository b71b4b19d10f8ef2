#include "calls_file.h"

#include "lib/crc32.h"

#include <string.h>

// The same on 32 and 64 bits.
_Static_assert(sizeof(struct calls_info) == 104, "");
_Static_assert(sizeof(struct calls_file_header) == 488, "");
_Static_assert(sizeof(struct calls_node) == 72, "");
_Static_assert(sizeof(struct calls_arc) == 24, "");

#define CRC_FROM (offsetof(struct calls_file_header, crc) + sizeof(uint32_t))

uint32_t calls_record_size(uint32_t mode)
{
    return mode == CALLS_PATHS  ? sizeof(struct calls_node)
           : mode == CALLS_ARCS ? sizeof(struct calls_arc)
                                : 0;
}

static uint32_t crc_of(const struct calls_file_header *h, const void *records)
{
    uint32_t crc = crc32(0, (const char *)h + CRC_FROM, sizeof(*h) - CRC_FROM);

    return crc32(crc, records, (size_t)h->info.records * h->record_size);
}

void calls_file_seal(struct calls_file_header *h, const void *records)
{
    memcpy(h->magic, CALLS_FILE_MAGIC, sizeof(h->magic));
    h->version = CALLS_FILE_VERSION;
    h->header_size = sizeof(*h);
    h->record_size = calls_record_size(h->info.mode);
    h->crc = crc_of(h, records);
}

bool calls_file_is(const void *bytes, size_t size)
{
    return size >= sizeof(CALLS_FILE_MAGIC) - 1 &&
           memcmp(bytes, CALLS_FILE_MAGIC, sizeof(CALLS_FILE_MAGIC) - 1) == 0;
}

static const char *check(const struct calls_file_header *h, size_t size)
{
    if (h->version != CALLS_FILE_VERSION)
        return "a call file of another version: read it with the strobe of "
               "the kernel that wrote it";
    if (h->header_size != sizeof(*h) || !h->record_size ||
        h->record_size != calls_record_size(h->info.mode))
        return "a damaged call file: its header is wrong";
    if (size - sizeof(*h) != (uint64_t)h->info.records * h->record_size)
        return "the call file was cut off or damaged: its length does not fit "
               "its header";
    if (h->build_id_size > sizeof(h->build_id) ||
        !memchr(h->kernel, '\0', sizeof(h->kernel)) ||
        !memchr(h->command, '\0', sizeof(h->command)))
        return "a damaged call file: its header is wrong";
    return NULL;
}

const char *calls_file_read(struct calls_file *f, const void *bytes,
                            size_t size)
{
    *f = (struct calls_file){ 0 };
    if (!calls_file_is(bytes, size))
        return "not a call file of cprofile -o";
    if (size < sizeof(f->header))
        return "the call file was cut off: it ends in its header";
    memcpy(&f->header, bytes, sizeof(f->header));
    const char *problem = check(&f->header, size);
    if (problem)
        return problem;
    const char *records = (const char *)bytes + sizeof(f->header);
    if (f->header.crc != crc_of(&f->header, records))
        return "the call file is damaged: its checksum is wrong";
    if (f->header.info.mode == CALLS_PATHS)
        f->nodes = (const void *)records;
    else
        f->arcs = (const void *)records;
    return NULL;
}
