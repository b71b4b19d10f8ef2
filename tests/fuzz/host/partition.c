// kernel/block/partition.c: any table, on a disk of any size, of which some
// sectors cannot be read. A partition that may be used lies within the disk and
// overlaps no other one.
// link: kernel/block/partition.c
#include "host.h"

#include <string.h>

#include "kernel/block/partition.h"
#include "lib/crc32.h"

#define KEPT 64u // first sectors of the disk, and as many last ones
#define EDITS 40 // most of an input
#define ARRAY_MOST (129u << 10) // bytes: more than is read
#define MBR_SIGNATURE_AT 510

static u8 first[KEPT][BLOCK_SECTOR], last[KEPT][BLOCK_SECTOR];
static u64 sectors, unreadable;

static u8 *sector_at(u64 sector)
{
    if (sector < KEPT)
        return first[sector];
    return sectors - sector <= KEPT ? last[KEPT - (sectors - sector)] : NULL;
}

static int read_sector(void *arg UNUSED, u64 sector, void *data)
{
    REQUIRE(sector < sectors);
    const u8 *from = sector_at(sector);
    if (sector == unreadable)
        return -5;
    memset(data, 0, BLOCK_SECTOR);
    if (from)
        memcpy(data, from, BLOCK_SECTOR);
    return 0;
}

// --- what an input could not guess

static void put(u8 *at, u64 value, u32 bytes)
{
    for (u32 i = 0; i < bytes; i++)
        at[i] = (u8)(value >> 8 * i);
}

static u32 array_crc(u64 from, u32 bytes)
{
    u32 crc = 0;
    for (u64 s = from; bytes; s++) {
        static const u8 zeros[BLOCK_SECTOR];
        u32 n = MIN(bytes, BLOCK_SECTOR);
        const u8 *data = s < sectors ? sector_at(s) : NULL;
        crc = crc32(crc, data ? data : zeros, n);
        bytes -= n;
    }
    return crc;
}

// A header whose own place, array and sums are right.
static void put_header(u64 lba, u64 array, u32 entries, u32 entry_bytes,
                       u64 usable_last)
{
    u8 *h = sector_at(lba);
    if (!h || entries * entry_bytes > ARRAY_MOST)
        return;
    memset(h, 0, BLOCK_SECTOR);
    memcpy(h, "EFI PART", 8);
    put(h + 8, 0x10000, 4);
    put(h + 12, 92, 4);
    put(h + 24, lba, 8);
    put(h + 40, 2, 8);
    put(h + 48, usable_last, 8);
    put(h + 72, array, 8);
    put(h + 80, entries, 4);
    put(h + 84, entry_bytes, 4);
    put(h + 88, array_crc(array, entries * entry_bytes), 4);
    put(h + 16, crc32(0, h, 92), 4);
}

static void put_entry(struct input *in, u8 *e)
{
    static const u8 types[3][16] = {
        { 0xa2, 0xa0, 0xd0, 0xeb, 0xe5, 0xb9, 0x33, 0x44, 0x87, 0xc0, 0x68,
          0xb6, 0xb7, 0x26, 0x99, 0xc7 },
        { 0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0x00,
          0xa0, 0xc9, 0x3e, 0xc9, 0x3b },
        { 1 },
    };
    u64 start = take_number(in, 3), size = take_number(in, 2);
    memcpy(e, types[take_byte(in) % 3], 16);
    put(e + 32, start, 8);
    put(e + 40, start + size - 1, 8);
}

static void edit(struct input *in)
{
    u8 how = take_byte(in), where = take_byte(in);
    u8 *s = how & 0x80 ? last[where % KEPT] : first[where % KEPT];
    u32 at = take_number(in, 2) % BLOCK_SECTOR;
    switch (how % 8) {
    case 0: // of the MBR
        s = first[0] + 446 + where % 4 * 16;
        s[4] = take_byte(in);
        put(s + 8, take_number(in, 4), 4);
        put(s + 12, take_number(in, 4), 4);
        break;
    case 1:
        put_entry(in, s + at % 4 * 128);
        break;
    case 2: {
        u64 lba = how & 0x80 ? sectors - 1 : 1;
        u64 array = how & 0x80 ? sectors - 1 - where % KEPT : where % KEPT;
        u64 usable = how & 0x40 ? sectors - 1 - at % 64 : at;
        put_header(lba, array, take_number(in, 2) % 1025, 128u << at % 3,
                   usable);
        break;
    }
    case 3:
        put(first[0] + MBR_SIGNATURE_AT, 0xaa55, 2);
        break;
    case 4:
        unreadable = how & 0x80 ? sectors - 1 - where : where;
        break;
    case 5: // FAT without a table
        first[0][0] = 0xeb;
        put(first[0] + 11, 512, 2);
        first[0][13] = where;
        first[0][16] = 2;
        break;
    default:
        for (u32 n = how >> 3 & 15; n && at < BLOCK_SECTOR; n--)
            s[at++] = take_byte(in);
    }
}

// --- promises

static void check_partition(const struct partition_table *t, u32 i)
{
    const struct partition *p = &t->at[i];
    REQUIRE(partition_kind(p) && (p->number || t->count == 1));
    if (p->unfit)
        return;
    REQUIRE(p->sectors && p->start < sectors &&
            p->sectors <= sectors - p->start);
    REQUIRE(!p->number || p->start > 0);
    for (u32 k = 0; k < i; k++) {
        const struct partition *o = &t->at[k];
        REQUIRE(o->number != p->number);
        REQUIRE(o->unfit || o->start + o->sectors <= p->start ||
                p->start + p->sectors <= o->start);
    }
}

static void check_table(void)
{
    struct partition_disk d = { read_sector, NULL, sectors };
    struct partition_table *t = malloc(sizeof(*t));
    REQUIRE(t);
    memset(t, 0xff, sizeof(*t));
    const char *why = partition_read(&d, t);
    REQUIRE(t->count <= PARTITIONS_MAX && (why || t->count));
    for (u32 i = 0; !why && i < t->count; i++) {
        check_partition(t, i);
        REQUIRE(partition_find(t, t->at[i].number) == &t->at[i]);
    }
    const struct partition *p = partition_find(t, PARTITION_FIRST);
    REQUIRE(!p || p->type == PARTITION_FAT);
    REQUIRE(!why || !partition_find(t, PARTITION_FIRST));
    free(t);
}

static void check_name(struct input *in)
{
    char text[40] = "", disk[12];
    u32 number, length = take_byte(in) % (sizeof(text) - 1);
    for (u32 i = 0; i < length; i++)
        text[i] = (char)take_byte(in);
    if (!partition_name(text, disk, sizeof(disk), &number))
        return;
    REQUIRE(memchr(disk, 0, sizeof(disk)) && strlen(disk) > 0);
    REQUIRE(strncmp(text, disk, strlen(disk)) == 0);
    REQUIRE(text[strlen(disk)] == (number ? 'p' : 0) && number < 100000);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct input in = { data, size };
    u8 large = take_byte(&in);
    memset(first, 0, sizeof(first));
    memset(last, 0, sizeof(last));
    put(first[0] + MBR_SIGNATURE_AT, 0xaa55, 2);
    sectors = take_number(&in, 3);
    if (large & 0x80)
        sectors |= (u64)take_number(&in, 4) << 24;
    unreadable = ~0ull;
    check_name(&in);
    for (u32 i = 0; i < EDITS && in.left; i++) {
        if (sectors)
            edit(&in);
        else
            take_byte(&in);
    }
    check_table();
    return 0;
}
