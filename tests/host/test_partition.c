// Tables of partitions: MBR and GPT as they are made, damaged, and with lies.
// link: kernel/block/partition.c
#include "test.h"

#include "kernel/block/partition.h"
#include "lib/crc32.h"

#define SECTORS 4096u
#define ENTRIES 128u
#define ARRAY (ENTRIES * 128 / BLOCK_SECTOR)
#define LAST (SECTORS - 1)

static u8 disk[SECTORS][BLOCK_SECTOR];
static u64 unreadable; // sector; 0: none
static u32 reads;
static struct partition_table table;

static int read_sector(void *arg UNUSED, u64 sector, void *data)
{
    assert_true(sector < SECTORS);
    reads++;
    if (unreadable && sector == unreadable)
        return -5;
    memcpy(data, disk[sector], BLOCK_SECTOR);
    return 0;
}

static const char *take(u64 sectors)
{
    struct partition_disk d = { read_sector, NULL, sectors };
    reads = 0;
    memset(&table, 0xff, sizeof(table));
    return partition_read(&d, &table);
}

static void put(u8 *at, u64 value, u32 bytes)
{
    for (u32 i = 0; i < bytes; i++)
        at[i] = (u8)(value >> 8 * i);
}

static void begin(void)
{
    memset(disk, 0, sizeof(disk));
    unreadable = 0;
    put(disk[0] + 510, 0xaa55, 2);
}

static void mbr_entry(u32 n, u8 type, u32 start, u32 sectors)
{
    u8 *e = disk[0] + 446 + 16 * n;
    e[4] = type;
    put(e + 8, start, 4);
    put(e + 12, sectors, 4);
}

static void expect(u32 n, u32 number, enum partition_type type, u64 start,
                   u64 sectors, bool fit)
{
    const struct partition *p = &table.at[n];
    assert_true(n < table.count);
    assert_int_equal(p->number, number);
    assert_int_equal(p->type, type);
    assert_int_equal(p->start, start);
    assert_int_equal(p->sectors, sectors);
    assert_int_equal(p->unfit == NULL, fit);
}

// --- MBR

static void mbr(void **state UNUSED)
{
    begin();
    assert_string_equal(take(SECTORS), "it has no partitions");
    mbr_entry(0, 0xef, 100, 50);
    mbr_entry(2, 0x0c, 200, SECTORS - 200);
    mbr_entry(3, 0x83, 150, 50);
    assert_null(take(SECTORS));
    assert_int_equal(table.count, 3);
    expect(0, 1, PARTITION_EFI, 100, 50, true);
    expect(1, 3, PARTITION_FAT, 200, SECTORS - 200, true);
    expect(2, 4, PARTITION_OTHER, 150, 50, true);
    assert_ptr_equal(partition_find(&table, PARTITION_FIRST), &table.at[1]);
    assert_ptr_equal(partition_find(&table, 4), &table.at[2]);
    assert_null(partition_find(&table, 2));
    assert_null(partition_find(&table, PARTITION_WHOLE));
    disk[0][511] = 0;
    assert_non_null(strstr(take(SECTORS), "neither"));
    assert_int_equal(table.count, 0);
    assert_string_equal(take(0), "it cannot be read");
}

static void mbr_lies(void **state UNUSED)
{
    static const u32 wrong[][2] = { { 200, SECTORS - 199 },
                                    { 0, 50 },
                                    { 200, 0 },
                                    { SECTORS, 1 },
                                    { 0xffffffff, 0xffffffff },
                                    { 1, 0xffffffff } };
    begin();
    for (u32 i = 0; i < ARRAY_SIZE(wrong); i++) {
        mbr_entry(0, 6, wrong[i][0], wrong[i][1]);
        assert_null(take(SECTORS));
        assert_string_equal(table.at[0].unfit,
                            wrong[i][0] && wrong[i][1]
                                ? "it is larger than the disk"
                                : "it is empty, or begins at the table");
    }
    mbr_entry(0, 6, 100, 100);
    mbr_entry(1, 0x83, 199, 100);
    mbr_entry(2, 6, 299, 100);
    mbr_entry(3, 6, 298, 1);
    assert_null(take(SECTORS));
    expect(0, 1, PARTITION_FAT, 100, 100, false);
    expect(1, 2, PARTITION_OTHER, 199, 100, false);
    expect(2, 3, PARTITION_FAT, 299, 100, true);
    expect(3, 4, PARTITION_FAT, 298, 1, false);
    assert_string_equal(table.at[3].unfit, "it overlaps another one");
}

static void without_a_table(void **state UNUSED)
{
    begin();
    memcpy(disk[0], "\xeb\x3cx", 3);
    put(disk[0] + 11, 512, 2);
    disk[0][13] = 4;
    disk[0][16] = 2;
    mbr_entry(0, 6, 100, 50); // the boot sector's program
    assert_null(take(SECTORS));
    assert_int_equal(table.count, 1);
    expect(0, PARTITION_WHOLE, PARTITION_FAT, 0, SECTORS, true);
    disk[0][13] = 3;
    assert_null(take(SECTORS));
    expect(0, 1, PARTITION_FAT, 100, 50, true);
}

// --- GPT

static const u8 efi[16] = { 0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11,
                            0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b };
static const u8 data[16] = { 0xa2, 0xa0, 0xd0, 0xeb, 0xe5, 0xb9, 0x33, 0x44,
                             0x87, 0xc0, 0x68, 0xb6, 0xb7, 0x26, 0x99, 0xc7 };

static void gpt_entry(u8 *array, u32 n, const u8 type[16], u64 first, u64 last)
{
    u8 *e = array + 128 * n;
    memcpy(e, type, 16);
    put(e + 32, first, 8);
    put(e + 40, last, 8);
}

static void sign(u8 *header)
{
    put(header + 16, 0, 4);
    put(header + 16, crc32(0, header, 92), 4);
}

static void header(u64 at, u64 other, u64 array)
{
    u8 *h = disk[at];
    memcpy(h, "EFI PART", 8);
    put(h + 8, 0x10000, 4);
    put(h + 12, 92, 4);
    put(h + 24, at, 8);
    put(h + 32, other, 8);
    put(h + 40, 2 + ARRAY, 8);
    put(h + 48, LAST - ARRAY - 1, 8);
    put(h + 72, array, 8);
    put(h + 80, ENTRIES, 4);
    put(h + 84, 128, 4);
    put(h + 88, crc32(0, disk[array], ENTRIES * 128), 4);
    sign(h);
}

// Both copies, with the entries that are in the first one.
static void seal(void)
{
    memcpy(disk[LAST - ARRAY], disk[2], ENTRIES * 128);
    header(1, LAST, 2);
    header(LAST, 1, LAST - ARRAY);
}

static void begin_gpt(void)
{
    begin();
    mbr_entry(0, 0xee, 1, SECTORS - 1);
    gpt_entry(disk[2], 0, efi, 100, 199);
    gpt_entry(disk[2], 5, data, 200, LAST - ARRAY - 1);
    seal();
}

static void expect_gpt(bool damaged)
{
    assert_null(take(SECTORS));
    assert_true(table.gpt);
    assert_int_equal(table.damaged, damaged);
    assert_int_equal(table.count, 2);
    expect(0, 1, PARTITION_EFI, 100, 100, true);
    expect(1, 6, PARTITION_FAT, 200, LAST - ARRAY - 200, true);
}

static void gpt(void **state UNUSED)
{
    begin_gpt();
    expect_gpt(false);
    assert_int_equal(reads, 2 + ARRAY);
    mbr_entry(1, 0x0c, 100, 100); // a hybrid: GPT is what counts
    expect_gpt(false);
    assert_ptr_equal(partition_find(&table, PARTITION_FIRST), &table.at[1]);
    begin_gpt();
    memset(disk[2], 0, ENTRIES * 128);
    seal();
    assert_string_equal(take(SECTORS), "it has no partitions");
}

// Each bit of what the CRCs cover: the second copy is used; with both damaged
// none.
static void gpt_damaged(void **state UNUSED)
{
    u8 *array = disk[2];
    begin_gpt();
    for (u32 bit = 0; bit < 92 * 8; bit++) {
        disk[1][bit / 8] ^= (u8)(1 << bit % 8);
        expect_gpt(true);
        u32 other = random_below(92 * 8);
        disk[LAST][other / 8] ^= (u8)(1 << other % 8);
        assert_string_equal(take(SECTORS),
                            "both copies of its GPT are damaged");
        disk[LAST][other / 8] ^= (u8)(1 << other % 8);
        disk[1][bit / 8] ^= (u8)(1 << bit % 8);
    }
    for (u32 run = 0; run < 200; run++) {
        u32 bit = random_below(ENTRIES * 128 * 8);
        array[bit / 8] ^= (u8)(1 << bit % 8);
        expect_gpt(true);
        array[bit / 8] ^= (u8)(1 << bit % 8);
    }
    for (unreadable = 1; unreadable < 2 + ARRAY; unreadable++)
        expect_gpt(true);
    unreadable = 0;
    expect_gpt(false);
}

// A header with a right CRC says what cannot be.
static void gpt_lies(void **state UNUSED)
{
    static const struct {
        u32 at, bytes;
        u64 value;
    } lies[] = {
        { 8, 4, 0x20000 },    { 12, 4, 91 },          { 12, 4, 513 },
        { 12, 4, ~0u },       { 24, 8, 2 },           { 40, 8, 1 },
        { 40, 8, SECTORS },   { 48, 8, SECTORS },     { 48, 8, ~0ull },
        { 72, 8, 1 },         { 72, 8, 0 },           { 72, 8, SECTORS - 31 },
        { 72, 8, ~0ull },     { 72, 8, ~0ull - 30 },  { 80, 4, 0 },
        { 80, 4, 0x2000000 }, { 80, 4, ~0u },         { 84, 4, 0 },
        { 84, 4, 64 },        { 84, 4, 127 },         { 84, 4, 384 },
        { 84, 4, 1024 },      { 84, 4, 0x80000000u },
    };
    for (u32 i = 0; i < ARRAY_SIZE(lies); i++) {
        begin_gpt();
        put(disk[1] + lies[i].at, lies[i].value, lies[i].bytes);
        sign(disk[1]);
        expect_gpt(true);
        assert_in_range(reads, 3 + ARRAY, 3 + 2 * ARRAY);
    }
    begin_gpt();
    assert_non_null(take(2));
    assert_non_null(take(1));
}

static void gpt_entries(void **state UNUSED)
{
    static const u64 wrong[][2] = {
        { 199, 100 },   { 2 + ARRAY - 1, 100 }, { 100, LAST - ARRAY },
        { 100, ~0ull }, { ~0ull, ~0ull },       { 0, ~0ull }
    };
    for (u32 i = 0; i < ARRAY_SIZE(wrong); i++) {
        begin_gpt();
        gpt_entry(disk[2], 0, data, wrong[i][0], wrong[i][1]);
        seal();
        assert_null(take(SECTORS));
        assert_non_null(table.at[0].unfit);
        assert_int_equal(table.at[0].sectors, 0);
        assert_null(table.at[1].unfit);
    }
    begin_gpt();
    gpt_entry(disk[2], 0, data, 100, 200);
    gpt_entry(disk[2], 5, data, 200, 300);
    for (u32 n = 10; n < 40; n++)
        gpt_entry(disk[2], n, efi, 300 + n, 300 + n);
    seal();
    assert_null(take(SECTORS));
    expect(0, 1, PARTITION_FAT, 100, 101, false);
    expect(1, 6, PARTITION_FAT, 200, 101, false);
    assert_int_equal(table.count, PARTITIONS_MAX);
    assert_true(table.more);
}

// Whatever the sectors contain, all partitions that can be used are within the
// disk and apart.
static void random_tables(void **state UNUSED)
{
    static const u8 values[] = { 0, 1, 2, 6, 0x0c, 0xee, 0xff, 0x80 };
    for (u32 run = 0; run < 20000; run++) {
        begin_gpt();
        for (u32 n = random_below(20); n; n--) {
            u32 at = random_below(3 * BLOCK_SECTOR);
            disk[at / BLOCK_SECTOR][at % BLOCK_SECTOR] =
                values[random_below(sizeof(values))];
        }
        if (random_below(2))
            disk[0][446 + 4] = 0x0c;
        if (random_below(2))
            seal();
        u64 sectors = random_below(2) ? SECTORS : random_below(SECTORS + 1);
        take(sectors);
        for (u32 i = 0; i < table.count; i++) {
            const struct partition *p = &table.at[i];
            if (p->unfit)
                continue;
            assert_true(p->sectors && p->start < sectors &&
                        p->sectors <= sectors - p->start);
            for (u32 k = 0; k < i; k++) {
                const struct partition *q = &table.at[k];
                assert_true(q->unfit || q->start >= p->start + p->sectors ||
                            p->start >= q->start + q->sectors);
            }
        }
    }
}

static void partition_names(void **state UNUSED)
{
    static const struct {
        const char *text, *disk;
        u32 number;
    } right[] = { { "sata0", "sata0", PARTITION_WHOLE },
                  { "sata0p1", "sata0", 1 },
                  { "sata11p128", "sata11", 128 },
                  { "1-4.2p3", "1-4.2", 3 } };
    static const char *const wrong[] = { "",        "p1",          "sata0p",
                                         "sata0p0", "sata0p1x",    "sata0p-1",
                                         "sata0p ", "sata00000000" };
    char name[12];
    u32 number;
    for (u32 i = 0; i < ARRAY_SIZE(right); i++) {
        assert_true(partition_name(right[i].text, name, sizeof(name), &number));
        assert_string_equal(name, right[i].disk);
        assert_int_equal(number, right[i].number);
    }
    for (u32 i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_false(partition_name(wrong[i], name, sizeof(name), &number));
    assert_true(partition_name("a", name, sizeof(name), &number));
    assert_false(
        partition_name("ap99999999999999", name, sizeof(name), &number));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(mbr),
        cmocka_unit_test(mbr_lies),
        cmocka_unit_test(without_a_table),
        cmocka_unit_test(gpt),
        cmocka_unit_test(gpt_damaged),
        cmocka_unit_test(gpt_lies),
        cmocka_unit_test(gpt_entries),
        cmocka_unit_test(random_tables),
        cmocka_unit_test(partition_names),
    };
    random_init();
    return cmocka_run_group_tests_name("partitions", tests, NULL, NULL);
}
