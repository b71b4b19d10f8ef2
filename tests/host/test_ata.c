// ATA disks: what IDENTIFY DEVICE says, and commands as the controller sends
// them.
// link: kernel/ahci/ata.c
#include "test.h"

#include "kernel/ahci/ata.h"

static u8 identity[ATA_IDENTIFY_BYTES];

static void set_word(u32 n, u32 value)
{
    identity[2 * n] = (u8)value;
    identity[2 * n + 1] = (u8)(value >> 8);
}

static void set_text(u32 n, u32 words, const char *text)
{
    memset(identity + 2 * n, ' ', 2 * words);
    for (u32 i = 0; text[i]; i++)
        identity[2 * n + (i ^ 1)] = (u8)text[i];
}

// A disk of 3 TB.
static void begin(void)
{
    memset(identity, 0, sizeof(identity));
    set_word(0, 0x40);
    set_text(10, 10, "  S1");
    set_text(27, 20, "A disk");
    set_word(49, 0x300);
    set_word(60, 0xffff);
    set_word(61, 0x0fff);
    set_word(83, 0x7400);
    set_word(100, 0x5678);
    set_word(101, 0x5d50);
    set_word(102, 1);
}

static void seal(void)
{
    u8 sum = 0;
    set_word(255, 0xa5);
    for (u32 i = 0; i < ATA_IDENTIFY_BYTES; i++)
        sum = (u8)(sum + identity[i]);
    identity[511] = (u8)-sum;
}

static void right(void **state UNUSED)
{
    struct ata_disk d;
    begin();
    assert_null(ata_parse_identify(identity, &d));
    assert_string_equal(d.model, "A disk");
    assert_string_equal(d.serial, "  S1");
    assert_int_equal(d.sectors, 0x15d505678);
    assert_true(d.wide && d.flush && d.flush_wide);
    seal();
    assert_null(ata_parse_identify(identity, &d));
    set_word(83, 0x5000); // no addresses of 48 bits
    seal();
    assert_null(ata_parse_identify(identity, &d));
    assert_int_equal(d.sectors, 0x0fffffff);
    assert_true(!d.wide && d.flush && !d.flush_wide);
    set_word(83, 0xf400); // not valid
    seal();
    assert_null(ata_parse_identify(identity, &d));
    assert_true(!d.wide && !d.flush && !d.flush_wide);
    begin();
    set_word(106, 0x6003); // 8 logical sectors in a physical one
    assert_null(ata_parse_identify(identity, &d));
    assert_int_equal(d.sector_bytes, 512);
}

static void refused(void **state UNUSED)
{
    static const struct {
        u32 word, value;
        const char *why;
    } wrong[] = {
        { 0, 0x8000, "damaged" },   { 49, 0x100, "no DMA" },
        { 49, 0x200, "no DMA" },    { 128, 0x7, "password" },
        { 255, 0x00a5, "damaged" },
    };
    struct ata_disk d;
    for (u32 i = 0; i < ARRAY_SIZE(wrong); i++) {
        begin();
        set_word(wrong[i].word, wrong[i].value);
        assert_non_null(strstr(ata_parse_identify(identity, &d), wrong[i].why));
    }
    begin();
    set_word(106, 0x5000);
    set_word(117, 2048);
    assert_string_equal(ata_parse_identify(identity, &d),
                        "its sectors do not have 512 bytes");
    set_word(118, 0x8000); // a size that does not fit
    assert_non_null(ata_parse_identify(identity, &d));
    begin();
    set_word(60, 0);
    set_word(61, 0);
    set_word(83, 0x5000);
    assert_string_equal(ata_parse_identify(identity, &d), "it has no sectors");
}

// What is taken fits the addresses that commands have.
static void random_identities(void **state UNUSED)
{
    struct ata_disk d;
    for (u32 run = 0; run < 50000; run++) {
        begin();
        for (u32 n = random_below(300); n; n--)
            identity[random_below(ATA_IDENTIFY_BYTES)] = (u8)random_u64();
        if (random_below(2))
            seal();
        if (ata_parse_identify(identity, &d))
            continue;
        assert_int_equal(d.sector_bytes, 512);
        assert_in_range(d.sectors, 1, d.wide ? 1ull << 48 : 0x0fffffff);
        assert_true(strlen(d.model) < sizeof(d.model));
        for (u32 i = 0; d.model[i]; i++)
            assert_in_range(d.model[i], ' ', '~');
    }
}

static void commands(void **state UNUSED)
{
    struct ata_disk d;
    struct ata_command c;
    u8 fis[ATA_FIS_BYTES];
    begin();
    assert_null(ata_parse_identify(identity, &d));
    c = ata_transfer(&d, true, 0x123456789, 0x100);
    assert_true(c.write && c.bytes == 0x20000);
    ata_fis(fis, &c);
    static const u8 wide[ATA_FIS_BYTES] = { 0x27, 0x80, 0x35, 0,    0x89,
                                            0x67, 0x45, 0x40, 0x23, 1,
                                            0,    0,    0,    1 };
    assert_memory_equal(fis, wide, sizeof(fis));
    assert_true(ata_flush(&d, &c) && c.code == 0xea && !c.bytes);
    d.wide = d.flush_wide = false;
    d.sectors = 0x0fffffff;
    c = ata_transfer(&d, false, 0x9abcdef, 0x100);
    assert_true(!c.write);
    ata_fis(fis, &c);
    static const u8 narrow[ATA_FIS_BYTES] = { 0x27, 0x80, 0xc8, 0,
                                              0xef, 0xcd, 0xab, 0x49 };
    assert_memory_equal(fis, narrow, sizeof(fis));
    assert_true(ata_flush(&d, &c) && c.code == 0xe7);
    d.flush = false;
    assert_false(ata_flush(&d, &c));
    c = ata_identify();
    ata_fis(fis, &c);
    assert_true(fis[2] == 0xec && c.bytes == 512 && !c.write);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(right),
        cmocka_unit_test(refused),
        cmocka_unit_test(random_identities),
        cmocka_unit_test(commands),
    };
    random_init();
    return cmocka_run_group_tests_name("ata", tests, NULL, NULL);
}
