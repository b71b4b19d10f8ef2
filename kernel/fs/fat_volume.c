// FAT: what the first sector of a file system says (FAT, "Boot Sector and
// BPB"); see fat.h.
#include "kernel/base/errno.h"
#include "kernel/fs/fat.h"
#include "lib/assert.h"
#include "lib/date.h"
#include "lib/string.h"

enum { // offsets in the boot sector
    BPB_SECTOR_BYTES = 11,
    BPB_CLUSTER_SECTORS = 13,
    BPB_RESERVED = 14,
    BPB_TABLES = 16,
    BPB_ROOT_ENTRIES = 17,
    BPB_SECTORS_16 = 19,
    BPB_TABLE_SECTORS_16 = 22,
    BPB_SECTORS_32 = 32,
    BPB_TABLE_SECTORS_32 = 36,
    BPB_FLAGS = 40,
    BPB_VERSION = 42,
    BPB_ROOT_CLUSTER = 44,
    BPB_INFO = 48,
};
#define FLAGS_ONE_TABLE 0x80u // the lowest 4 bits are its number
#define CLUSTERS_12 4085u     // fewer are FAT12
#define CLUSTERS_16 65525u
#define CLUSTERS_32 0x0ffffff0u
#define ENTRY_BYTES 32u

enum { // FSInfo
    INFO_LEAD = 0,
    INFO_STRUCT = 484,
    INFO_FREE = 488,
    INFO_NEXT = 492,
};
#define LEAD 0x41615252u
#define STRUCT 0x61417272u

static int transfer(struct fat *f, bool write, u32 sector, u32 count,
                    void *data)
{
    return f->disk.transfer(f->disk.arg, write, sector, count, data);
}

// Reads FSInfo (FAT, "FAT32 FSInfo Sector"), whose numbers are only hints.
static void read_info(struct fat *f, u32 sector)
{
    f->info_sector = 0;
    f->free = FAT_UNKNOWN;
    f->next = 2;
    if (!sector || transfer(f, false, sector, 1, f->part) ||
        disk_long(f->part + INFO_LEAD) != LEAD ||
        disk_long(f->part + INFO_STRUCT) != STRUCT)
        return;
    f->info_sector = sector;
    u32 free = disk_long(f->part + INFO_FREE);
    u32 next = disk_long(f->part + INFO_NEXT);
    if (free <= f->clusters)
        f->free = free;
    if (fat_valid(f, next))
        f->next = next;
}

static const char *take_layout(struct fat *f)
{
    const u8 *s = f->part;
    u32 sectors = disk_word(s + BPB_SECTORS_16);
    u32 reserved = disk_word(s + BPB_RESERVED);
    u32 roots = disk_word(s + BPB_ROOT_ENTRIES);
    if (disk_word(s + BPB_SECTOR_BYTES) != FAT_SECTOR)
        return "its sectors do not have 512 bytes";
    if (!sectors)
        sectors = disk_long(s + BPB_SECTORS_32);
    f->table_sectors = disk_word(s + BPB_TABLE_SECTORS_16);
    bool large = !f->table_sectors;
    if (large)
        f->table_sectors = disk_long(s + BPB_TABLE_SECTORS_32);
    f->tables = s[BPB_TABLES];
    f->cluster_sectors = s[BPB_CLUSTER_SECTORS];
    f->root_sectors = (roots * ENTRY_BYTES + FAT_SECTOR - 1) / FAT_SECTOR;
    u64 before =
        (u64)reserved + (u64)f->tables * f->table_sectors + f->root_sectors;
    if (!reserved || f->tables > 2 || !f->table_sectors || before >= sectors ||
        large == (f->root_sectors != 0))
        return "its boot sector is broken";
    if (sectors > f->disk.sectors)
        return "its file system is larger than the disk";
    f->table_start = reserved;
    f->root_start = f->table_start + f->tables * f->table_sectors;
    f->data_start = f->root_start + f->root_sectors;
    f->clusters = (sectors - (u32)before) / f->cluster_sectors;
    f->bits = large ? 32 : f->clusters < CLUSTERS_12 ? 12 : 16;
    u32 most = large ? CLUSTERS_32 : CLUSTERS_16 - 1;
    u64 bits = ((u64)f->clusters + 2) * f->bits;
    if (!f->clusters || f->clusters > most ||
        bits > (u64)f->table_sectors * FAT_SECTOR * 8)
        return "its table does not fit its size";
    return NULL;
}

static const char *take_large_layout(struct fat *f)
{
    const u8 *s = f->part;
    u32 flags = disk_word(s + BPB_FLAGS);
    f->root_cluster = disk_long(s + BPB_ROOT_CLUSTER);
    if (disk_word(s + BPB_VERSION) || !fat_valid(f, f->root_cluster))
        return "its boot sector is broken";
    if (flags & FLAGS_ONE_TABLE) {
        if ((flags & 15) >= f->tables)
            return "its boot sector is broken";
        f->table_start += (flags & 15) * f->table_sectors;
        f->tables = 1;
    }
    u32 info = disk_word(s + BPB_INFO), reserved = disk_word(s + BPB_RESERVED);
    read_info(f, info < reserved ? info : 0);
    // Of a root whose clusters are free others would get them.
    struct fat_node root;
    fat_root(f, &root);
    return fat_check(f, &root) ? "its root directory is broken" : NULL;
}

// Of a disk that says that it is larger than it is: one that answers anything
// behind its end is not found out without writing there.
static const char *read_last(struct fat *f)
{
    u32 end = f->data_start + f->clusters * f->cluster_sectors;
    return transfer(f, false, end - 1, 1, f->part)
               ? "its last sector cannot be read: is the disk smaller than it "
                 "says?"
               : NULL;
}

const char *fat_mount(struct fat *f, const struct fat_disk *disk)
{
    memset(f, 0, sizeof(*f));
    f->disk = *disk;
    f->free = FAT_UNKNOWN;
    f->next = 2;
    if (!disk->sectors || transfer(f, false, 0, 1, f->part))
        return "it cannot be read";
    if (!partition_is_fat(f->part))
        return "it has no FAT file system";
    const char *why = take_layout(f);
    if (!why && f->bits == 32)
        why = take_large_layout(f);
    return why ? why : read_last(f);
}

void fat_root(const struct fat *f, struct fat_node *root)
{
    *root = (struct fat_node){
        .first = f->root_cluster,
        .attributes = FAT_DIRECTORY,
        .slot = FAT_NO_SLOT,
    };
}

void fat_forget(struct fat *f)
{
    f->held_sectors = f->dirty_from = f->dirty_to = 0;
    f->slot_sector = 0;
    f->slot_dirty = false;
    f->free = FAT_UNKNOWN;
}

int fat_flush_slots(struct fat *f)
{
    if (!f->slot_dirty)
        return 0;
    int err = transfer(f, true, f->slot_sector, 1, f->slots);
    f->slot_dirty = false;
    if (err)
        fat_forget(f);
    return err;
}

int fat_flush(struct fat *f)
{
    int err = fat_flush_table(f);
    return err ? err : fat_flush_slots(f);
}

int fat_sync(struct fat *f)
{
    int err = fat_flush(f);
    if (err || !f->free_changed || !f->info_sector)
        return err;
    err = transfer(f, false, f->info_sector, 1, f->part);
    if (err)
        return err;
    fat_put_long(f->part + INFO_FREE, f->free);
    fat_put_long(f->part + INFO_NEXT, f->next);
    err = transfer(f, true, f->info_sector, 1, f->part);
    if (!err)
        f->free_changed = false;
    return err;
}

// --- time (FAT, "Date and Time Formats"): from 1980 to 2107, in 2 s

#define FIRST_YEAR 1980u
#define LAST_YEAR 2107u

struct fat_time fat_time_of(s64 seconds)
{
    struct date d;
    if (!seconds_to_date(seconds, &d) || d.year < FIRST_YEAR ||
        d.year > LAST_YEAR)
        return (struct fat_time){ 1 | 1 << 5, 0 };
    return (struct fat_time){
        .date = (u16)(d.day | d.month << 5 | (d.year - FIRST_YEAR) << 9),
        .time = (u16)(d.second / 2 | d.minute << 5 | d.hour << 11),
    };
}

s64 fat_seconds(struct fat_time t)
{
    struct date d = {
        .year = FIRST_YEAR + (t.date >> 9),
        .month = t.date >> 5 & 15,
        .day = t.date & 31,
        .hour = t.time >> 11,
        .minute = t.time >> 5 & 63,
        .second = (t.time & 31) * 2u,
    };
    return date_is_valid(&d) ? date_to_seconds(&d) : 0;
}
