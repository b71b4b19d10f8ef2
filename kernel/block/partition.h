// Tables of partitions: MBR (UEFI 2.10, 5.2.1) and GPT (5.3). Pure code over a
// function that reads a sector; what is on the disk is not trusted, and nothing
// is written.
//
// A partition that ends behind the disk, or overlaps another one, is listed,
// with the reason why it is not to be used.
#pragma once

#include "lib/types.h"

#define BLOCK_SECTOR 512u
#define SECTORS_OF_MIB (1048576u / BLOCK_SECTOR)
#define PARTITIONS_MAX 16u

#define PARTITION_WHOLE 0u // a file system without a table
#define PARTITION_FIRST (~0u)

enum partition_type {
    PARTITION_OTHER,
    PARTITION_FAT, // the type says: perhaps
    PARTITION_EFI, // the EFI system partition: FAT with loaders
};

struct partition {
    u32 number; // from 1: its place in the table; or PARTITION_WHOLE
    enum partition_type type;
    u64 start, sectors;
    const char *unfit; // NULL, or why it cannot be used
};

struct partition_disk {
    int (*read)(void *arg, u64 sector, void *data); // 0 or an error
    void *arg;
    u64 sectors;
};

struct partition_table {
    bool gpt;
    bool damaged; // GPT: the first copy is, so the second one was read
    bool more;    // there are more than fit
    u32 count;
    struct partition at[PARTITIONS_MAX];
    u8 sector[BLOCK_SECTOR]; // that was read last
};

// NULL, or why there are no partitions.
const char *partition_read(const struct partition_disk *d,
                           struct partition_table *out);
// The partition of this number; PARTITION_FIRST: the first one whose type is
// FAT. NULL: there is none.
const struct partition *partition_find(const struct partition_table *t,
                                       u32 number);
const char *partition_kind(const struct partition *p); // for people
// "sata0p12" is partition 12 of sata0; "sata0" PARTITION_WHOLE. False: it is no
// name of a partition.
bool partition_name(const char *text, char *disk, size_t size, u32 *number);
// Whether a file system's first sector is FAT's, as far as one can tell.
bool partition_is_fat(const u8 *sector);

static inline u32 disk_word(const u8 *p)
{
    return p[0] | (u32)p[1] << 8;
}
static inline u32 disk_long(const u8 *p)
{
    return disk_word(p) | disk_word(p + 2) << 16;
}
