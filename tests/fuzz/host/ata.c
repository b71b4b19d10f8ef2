// kernel/ahci/ata.c: any answer to IDENTIFY DEVICE. A disk that is accepted has
// sectors of 512 bytes, and each command for it names the sectors that were
// asked for.
// link: kernel/ahci/ata.c
#include "host.h"

#include <string.h>

#include "kernel/ahci/ata.h"

#define WORD_SECTOR_SIZE 106
#define WORD_SECTOR_WORDS 117
#define WORD_INTEGRITY 255

static u32 word(const u8 *d, u32 n)
{
    return d[2 * n] | (u32)d[2 * n + 1] << 8;
}

static void check_text(const char *text, size_t size)
{
    REQUIRE(memchr(text, 0, size));
    for (; *text; text++)
        REQUIRE(*text >= ' ' && *text < 0x7f);
}

static void check_size(const struct ata_disk *d, const u8 *data)
{
    u64 words = word(data, WORD_SECTOR_WORDS) |
                (u64)word(data, WORD_SECTOR_WORDS + 1) << 16;
    u32 size = word(data, WORD_SECTOR_SIZE);
    REQUIRE(d->sector_bytes == 512);
    REQUIRE(size >> 14 != 1 || !(size & 0x1000) || words == 256);
    REQUIRE(d->sectors && d->sectors <= (d->wide ? 1ull << 48 : 0x0fffffff));
}

static void check_command(const struct ata_disk *d, bool write, u64 sector,
                          u32 count)
{
    struct ata_command c = ata_transfer(d, write, sector, count);
    u8 *fis = malloc(ATA_FIS_BYTES);
    REQUIRE(fis && c.write == write && c.bytes == count * 512);
    ata_fis(fis, &c);
    u64 at = fis[4] | fis[5] << 8 | (u32)fis[6] << 16;
    u32 n = fis[12];
    if (d->wide) {
        at |= (u64)fis[8] << 24 | (u64)fis[9] << 32 | (u64)fis[10] << 40;
        n |= (u32)fis[13] << 8;
    } else {
        at |= (u64)(fis[7] & 15) << 24;
        n = n ? n : 256;
    }
    REQUIRE(at == sector && n == count && fis[7] & 0x40);
    free(fis);
}

// The last sectors of the disk, and others.
static void check_commands(const struct ata_disk *d, struct input *in)
{
    u32 count = 1 + take_byte(in);
    u64 sector = take_number(in, 4) | (u64)take_number(in, 2) << 32;
    struct ata_command c;
    count = (u32)MIN((u64)count, d->sectors);
    check_command(d, false, d->sectors - count, count);
    check_command(d, true, sector % (d->sectors - count + 1), count);
    REQUIRE(ata_flush(d, &c) == (d->flush || d->flush_wide));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct input in = { data, size };
    u8 answer[ATA_IDENTIFY_BYTES] = { 0 }, how = take_byte(&in), sum = 0;
    struct ata_disk d;
    for (u32 i = 0; i < 64 && in.left; i++) {
        u32 at = take_byte(&in);
        answer[2 * at] = take_byte(&in);
        answer[2 * at + 1] = take_byte(&in);
    }
    if (how & 1) { // DMA and linear addresses
        answer[99] |= 3;
        answer[1] &= 0x7f;
    }
    if (how & 2) { // words 83 and 106 are valid
        answer[167] = (u8)((answer[167] & 0x3f) | 0x40);
        answer[213] = (u8)((answer[213] & 0x3f) | 0x40);
    }
    if (how & 4) {
        answer[2 * WORD_INTEGRITY] = 0xa5;
        answer[2 * WORD_INTEGRITY + 1] = 0;
        for (u32 i = 0; i < sizeof(answer); i++)
            sum = (u8)(sum + answer[i]);
        answer[2 * WORD_INTEGRITY + 1] = (u8)-sum;
    }
    u8 *copy = guarded(answer, sizeof(answer));
    memset(&d, 0xff, sizeof(d));
    const char *why = ata_parse_identify(copy, &d);
    check_text(d.model, sizeof(d.model));
    check_text(d.serial, sizeof(d.serial));
    if (!why) {
        check_size(&d, copy);
        check_commands(&d, &in);
    }
    free(copy);
    return 0;
}
