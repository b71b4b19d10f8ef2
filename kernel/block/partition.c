// Tables of partitions; see partition.h.
#include "kernel/block/partition.h"
#include "lib/assert.h"
#include "lib/crc32.h"
#include "lib/string.h"

// The MBR (UEFI 2.10, table 5.1, table 5.2)
#define MBR_SIGNATURE_AT 510u
#define MBR_SIGNATURE 0xaa55u
#define MBR_ENTRIES_AT 446u
#define MBR_ENTRY_BYTES 16u
#define MBR_ENTRIES 4u
enum { MBR_TYPE = 4, MBR_START = 8, MBR_SIZE = 12 };
#define TYPE_EFI 0xef
#define TYPE_GPT 0xee // protective: 5.2.3

// The GPT's header (5.3.2, table 5.5)
enum {
    GPT_SIGNATURE = 0,
    GPT_REVISION = 8,
    GPT_HEADER_BYTES = 12,
    GPT_HEADER_CRC = 16,
    GPT_MY_LBA = 24,
    GPT_FIRST = 40,
    GPT_LAST = 48,
    GPT_ENTRIES_AT = 72,
    GPT_ENTRIES = 80,
    GPT_ENTRY_BYTES = 84,
    GPT_ENTRIES_CRC = 88,
    GPT_HEADER_LEAST = 92,
};
#define GPT_MAJOR 1u                // of the revision, in its upper half
#define GPT_ENTRY_LEAST 128u        // and times a power of two: 5.3.2
#define GPT_ARRAY_MOST (128u << 10) // bytes; 16 KiB are usual
enum { ENTRY_TYPE = 0, ENTRY_FIRST = 32, ENTRY_LAST = 40 }; // table 5.6
#define GUID_BYTES 16u

// As bytes (appendix A): "EFI System Partition" (table 5.7), and Microsoft's
// "basic data" EBD0A0A2-B9E5-4433-87C0-68B6B72699C7, which FAT file systems
// have.
static const u8 guid_efi[GUID_BYTES] = { 0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8,
                                         0xd2, 0x11, 0xba, 0x4b, 0x00, 0xa0,
                                         0xc9, 0x3e, 0xc9, 0x3b };
static const u8 guid_data[GUID_BYTES] = { 0xa2, 0xa0, 0xd0, 0xeb, 0xe5, 0xb9,
                                          0x33, 0x44, 0x87, 0xc0, 0x68, 0xb6,
                                          0xb7, 0x26, 0x99, 0xc7 };
static const u8 guid_none[GUID_BYTES];

#define UNREADABLE "it cannot be read"

static u64 wide(const u8 *p)
{
    return disk_long(p) | (u64)disk_long(p + 4) << 32;
}

static void add(struct partition_table *t, const struct partition *p)
{
    if (t->count < PARTITIONS_MAX)
        t->at[t->count++] = *p;
    else
        t->more = true;
}

// --- no table

enum { // of FAT's first sector (FAT, "Boot Sector and BPB")
    BPB_SECTOR_BYTES = 11,
    BPB_CLUSTER_SECTORS = 13,
    BPB_TABLES = 16,
};

static bool is_power_of_two(u32 n)
{
    return n && !(n & (n - 1));
}

bool partition_is_fat(const u8 *s)
{
    return (s[0] == 0xeb || s[0] == 0xe9) &&
           disk_word(s + MBR_SIGNATURE_AT) == MBR_SIGNATURE &&
           is_power_of_two(disk_word(s + BPB_SECTOR_BYTES)) &&
           is_power_of_two(s[BPB_CLUSTER_SECTORS]) && s[BPB_TABLES];
}

// --- MBR

static enum partition_type mbr_type(u8 type)
{
    switch (type) {
    case 0x01: // FAT12
    case 0x04: // FAT16, below 32 MB
    case 0x06: // FAT16
    case 0x0b: // FAT32
    case 0x0c: // FAT32, by LBA
    case 0x0e: // FAT16, by LBA
        return PARTITION_FAT;
    case TYPE_EFI:
        return PARTITION_EFI;
    default:
        return PARTITION_OTHER;
    }
}

static bool is_protective(const u8 *mbr)
{
    for (u32 i = 0; i < MBR_ENTRIES; i++) {
        if (mbr[MBR_ENTRIES_AT + i * MBR_ENTRY_BYTES + MBR_TYPE] == TYPE_GPT)
            return true;
    }
    return false;
}

static const char *take_mbr(const struct partition_disk *d,
                            struct partition_table *t)
{
    for (u32 i = 0; i < MBR_ENTRIES; i++) {
        const u8 *e = t->sector + MBR_ENTRIES_AT + i * MBR_ENTRY_BYTES;
        struct partition p = {
            .number = i + 1,
            .type = mbr_type(e[MBR_TYPE]),
            .start = disk_long(e + MBR_START),
            .sectors = disk_long(e + MBR_SIZE),
        };
        if (!e[MBR_TYPE])
            continue;
        if (!p.start || !p.sectors)
            p.unfit = "it is empty, or begins at the table";
        else if (p.start >= d->sectors || p.sectors > d->sectors - p.start)
            p.unfit = "it is larger than the disk";
        add(t, &p);
    }
    return t->count ? NULL : "it has no partitions";
}

// --- GPT

struct gpt {
    u64 first, last; // sectors that partitions may have
    u64 entries_at;
    u32 entries, entry_bytes;
    u32 entries_crc;
};

// 5.3.2: what is to be checked before a header is believed.
static bool take_header(const struct partition_disk *d, u8 *s, u64 lba,
                        struct gpt *g)
{
    u32 bytes = disk_long(s + GPT_HEADER_BYTES),
        crc = disk_long(s + GPT_HEADER_CRC);
    if (memcmp(s + GPT_SIGNATURE, "EFI PART", 8) != 0 ||
        disk_long(s + GPT_REVISION) >> 16 != GPT_MAJOR ||
        bytes < GPT_HEADER_LEAST || bytes > BLOCK_SECTOR)
        return false;
    memset(s + GPT_HEADER_CRC, 0, sizeof(crc));
    if (crc32(0, s, bytes) != crc || wide(s + GPT_MY_LBA) != lba)
        return false;
    *g = (struct gpt){
        .first = wide(s + GPT_FIRST),
        .last = wide(s + GPT_LAST),
        .entries_at = wide(s + GPT_ENTRIES_AT),
        .entries = disk_long(s + GPT_ENTRIES),
        .entry_bytes = disk_long(s + GPT_ENTRY_BYTES),
        .entries_crc = disk_long(s + GPT_ENTRIES_CRC),
    };
    // An entry of 128, 256 or 512 bytes does not cross a sector.
    if (g->entry_bytes < GPT_ENTRY_LEAST || BLOCK_SECTOR % g->entry_bytes ||
        !g->entries || g->entries > GPT_ARRAY_MOST / g->entry_bytes)
        return false;
    u32 sectors = (g->entries * g->entry_bytes - 1) / BLOCK_SECTOR + 1;
    return g->first >= 2 && g->first <= g->last && g->last < d->sectors &&
           g->entries_at >= 2 && g->entries_at < d->sectors &&
           sectors <= d->sectors - g->entries_at;
}

static void take_entry(const struct gpt *g, const u8 *e, u32 number,
                       struct partition_table *t)
{
    const u8 *type = e + ENTRY_TYPE;
    u64 first = wide(e + ENTRY_FIRST), last = wide(e + ENTRY_LAST);
    if (memcmp(type, guid_none, GUID_BYTES) == 0)
        return;
    struct partition p = { .number = number, .start = first };
    if (memcmp(type, guid_data, GUID_BYTES) == 0)
        p.type = PARTITION_FAT;
    else if (memcmp(type, guid_efi, GUID_BYTES) == 0)
        p.type = PARTITION_EFI;
    if (first > last || first < g->first || last > g->last)
        p.unfit = "it is not within the disk's usable sectors";
    else
        p.sectors = last - first + 1;
    add(t, &p);
}

static bool take_entries(const struct partition_disk *d, const struct gpt *g,
                         struct partition_table *t)
{
    u32 of_sector = BLOCK_SECTOR / g->entry_bytes, crc = 0;
    for (u32 done = 0; done < g->entries;) {
        u32 n = MIN(of_sector, g->entries - done);
        if (d->read(d->arg, g->entries_at + done / of_sector, t->sector))
            return false;
        crc = crc32(crc, t->sector, n * g->entry_bytes);
        for (u32 i = 0; i < n; i++)
            take_entry(g, t->sector + i * g->entry_bytes, done + i + 1, t);
        done += n;
    }
    return crc == g->entries_crc;
}

static bool take_copy(const struct partition_disk *d, u64 lba,
                      struct partition_table *t)
{
    struct gpt g;
    bool right = !d->read(d->arg, lba, t->sector) &&
                 take_header(d, t->sector, lba, &g) && take_entries(d, &g, t);
    if (!right) {
        t->count = 0;
        t->more = false;
    }
    return right;
}

// The first copy, or the one in the last sector (5.3.2).
static const char *take_gpt(const struct partition_disk *d,
                            struct partition_table *t)
{
    t->gpt = true;
    if (d->sectors > 2 && !take_copy(d, 1, t)) {
        t->damaged = true;
        if (!take_copy(d, d->sectors - 1, t))
            return "both copies of its GPT are damaged";
    }
    return t->count ? NULL : "it has no partitions";
}

// --- both

static bool overlap(const struct partition *a, const struct partition *b)
{
    return a->start < b->start + b->sectors && b->start < a->start + a->sectors;
}

// Of two that overlap neither can be used.
static void find_overlaps(struct partition_table *t)
{
    static const char text[] = "it overlaps another one";
    for (u32 i = 0; i < t->count; i++) {
        for (u32 k = 0; k < i; k++) {
            struct partition *a = &t->at[i], *b = &t->at[k];
            if ((!a->unfit || a->unfit == text) &&
                (!b->unfit || b->unfit == text) && overlap(a, b))
                a->unfit = b->unfit = text;
        }
    }
}

const char *partition_read(const struct partition_disk *d,
                           struct partition_table *out)
{
    memset(out, 0, sizeof(*out));
    if (!d->sectors || d->read(d->arg, 0, out->sector))
        return UNREADABLE;
    if (disk_word(out->sector + MBR_SIGNATURE_AT) != MBR_SIGNATURE)
        return "it has neither partitions nor a file system";
    if (partition_is_fat(out->sector)) {
        add(out, &(struct partition){ .number = PARTITION_WHOLE,
                                      .type = PARTITION_FAT,
                                      .sectors = d->sectors });
        return NULL;
    }
    const char *why =
        is_protective(out->sector) ? take_gpt(d, out) : take_mbr(d, out);
    find_overlaps(out);
    return why;
}

const struct partition *partition_find(const struct partition_table *t,
                                       u32 number)
{
    for (u32 i = 0; i < t->count; i++) {
        const struct partition *p = &t->at[i];
        if (number == PARTITION_FIRST ? p->type == PARTITION_FAT
                                      : p->number == number)
            return p;
    }
    return NULL;
}

const char *partition_kind(const struct partition *p)
{
    if (p->number == PARTITION_WHOLE)
        return "FAT without partitions";
    switch (p->type) {
    case PARTITION_FAT:
        return "partition of the type FAT";
    case PARTITION_EFI:
        return "EFI system partition";
    default:
        return "partition of another type";
    }
}

bool partition_name(const char *text, char *disk, size_t size, u32 *number)
{
    const char *p = strrchr(text, 'p');
    size_t length = p ? (size_t)(p - text) : strlen(text);
    *number = PARTITION_WHOLE;
    if (!length || length >= size)
        return false;
    memcpy(disk, text, length);
    disk[length] = 0;
    if (!p)
        return true;
    while (*++p >= '0' && *p <= '9' && *number < 10000)
        *number = *number * 10 + (u32)(*p - '0');
    return !*p && *number != PARTITION_WHOLE;
}
