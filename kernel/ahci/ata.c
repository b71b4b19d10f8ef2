// ATA disks; see ata.h. Words are those of ATA8-ACS, "IDENTIFY DEVICE".
#include "kernel/ahci/ata.h"
#include "lib/assert.h"
#include "lib/string.h"

enum {
    READ_DMA = 0xc8,
    READ_DMA_EXT = 0x25,
    WRITE_DMA = 0xca,
    WRITE_DMA_EXT = 0x35,
    FLUSH_CACHE = 0xe7,
    FLUSH_CACHE_EXT = 0xea,
    IDENTIFY_DEVICE = 0xec,
};

enum { // words
    GENERAL = 0,
    SERIAL = 10,
    MODEL = 27,
    CAPABILITIES = 49,
    SECTORS_28 = 60,
    COMMANDS = 83,
    SECTORS_48 = 100,
    SECTOR_SIZE = 106,
    SECTOR_WORDS = 117,
    SECURITY = 128,
    INTEGRITY = 255,
};
#define GENERAL_NOT_ATA (1u << 15)
#define CAPABILITIES_DMA (1u << 8)
#define CAPABILITIES_LBA (1u << 9)
#define VALID(word) (((word) >> 14) == 1) // of words 83 and 106
#define COMMANDS_48 (1u << 10)
#define COMMANDS_FLUSH (1u << 12)
#define COMMANDS_FLUSH_EXT (1u << 13)
#define SECTOR_LARGE (1u << 12) // words 117 and 118 have the size
#define SECTOR_USUAL 512u
#define SECURITY_LOCKED (1u << 2)
#define INTEGRITY_SIGNATURE 0xa5u
#define SECTORS_28_MOST 0x0fffffffu
#define SECTORS_48_MOST (1ull << 48)

#define DEVICE_LBA 0x40
#define FIS_REGISTER 0x27
#define FIS_COMMAND 0x80

static u32 word(const u8 *d, u32 n)
{
    return d[2 * n] | (u32)d[2 * n + 1] << 8;
}

static u32 two_words(const u8 *d, u32 n)
{
    return word(d, n) | word(d, n + 1) << 16;
}

// The first character of a word is its upper byte.
static void take_text(const u8 *d, u32 n, char *out, u32 size)
{
    u32 length = size - 1;
    for (u32 i = 0; i < length; i++) {
        u8 c = d[2 * n + (i ^ 1)];
        out[i] = c >= ' ' && c < 0x7f ? (char)c : c ? '?' : ' ';
    }
    while (length && out[length - 1] == ' ')
        length--;
    out[length] = 0;
}

static bool sum_is_right(const u8 *d)
{
    u8 sum = 0;
    if ((word(d, INTEGRITY) & 0xff) != INTEGRITY_SIGNATURE)
        return true; // it has none
    for (u32 i = 0; i < ATA_IDENTIFY_BYTES; i++)
        sum = (u8)(sum + d[i]);
    return !sum;
}

static void take_size(const u8 *d, struct ata_disk *out)
{
    u32 commands = word(d, COMMANDS), size = word(d, SECTOR_SIZE);
    u64 sectors = two_words(d, SECTORS_48) | (u64)two_words(d, SECTORS_48 + 2)
                                                 << 32;
    bool known = VALID(commands);
    out->wide = known && commands & COMMANDS_48 && sectors &&
                sectors <= SECTORS_48_MOST;
    out->sectors =
        out->wide ? sectors : MIN(two_words(d, SECTORS_28), SECTORS_28_MOST);
    out->flush = known && commands & COMMANDS_FLUSH;
    out->flush_wide = out->wide && commands & COMMANDS_FLUSH_EXT;
    out->sector_bytes = SECTOR_USUAL;
    if (VALID(size) && size & SECTOR_LARGE)
        out->sector_bytes = MIN(two_words(d, SECTOR_WORDS), UINT32_MAX / 2) * 2;
}

const char *ata_parse_identify(const u8 d[ATA_IDENTIFY_BYTES],
                               struct ata_disk *out)
{
    memset(out, 0, sizeof(*out));
    if (word(d, GENERAL) & GENERAL_NOT_ATA || !sum_is_right(d))
        return "its description is damaged";
    take_text(d, MODEL, out->model, sizeof(out->model));
    take_text(d, SERIAL, out->serial, sizeof(out->serial));
    take_size(d, out);
    u32 capabilities = word(d, CAPABILITIES);
    if (!(capabilities & CAPABILITIES_LBA) ||
        !(capabilities & CAPABILITIES_DMA))
        return "it has no DMA, or no linear addresses";
    if (word(d, SECURITY) & SECURITY_LOCKED)
        return "it is locked by a password";
    if (!out->sectors)
        return "it has no sectors";
    return out->sector_bytes == SECTOR_USUAL
               ? NULL
               : "its sectors do not have 512 bytes";
}

struct ata_command ata_identify(void)
{
    return (struct ata_command){ .code = IDENTIFY_DEVICE,
                                 .bytes = ATA_IDENTIFY_BYTES };
}

struct ata_command ata_transfer(const struct ata_disk *d, bool write,
                                u64 sector, u32 count)
{
    static const u8 codes[2][2] = { { READ_DMA, READ_DMA_EXT },
                                    { WRITE_DMA, WRITE_DMA_EXT } };
    assert(count && count <= 256 && sector < d->sectors &&
           count <= d->sectors - sector);
    return (struct ata_command){ .code = codes[write][d->wide],
                                 .write = write,
                                 .sector = sector,
                                 .count = count,
                                 .bytes = count * d->sector_bytes };
}

bool ata_flush(const struct ata_disk *d, struct ata_command *out)
{
    *out = (struct ata_command){
        .code = d->flush_wide ? FLUSH_CACHE_EXT : FLUSH_CACHE,
    };
    return d->flush || d->flush_wide;
}

static bool has_wide_address(u8 code)
{
    return code == READ_DMA_EXT || code == WRITE_DMA_EXT;
}

void ata_fis(u8 out[ATA_FIS_BYTES], const struct ata_command *c)
{
    bool wide = has_wide_address(c->code);
    u64 at = c->sector;
    memset(out, 0, ATA_FIS_BYTES);
    out[0] = FIS_REGISTER;
    out[1] = FIS_COMMAND;
    out[2] = c->code;
    out[4] = (u8)at;
    out[5] = (u8)(at >> 8);
    out[6] = (u8)(at >> 16);
    out[7] = DEVICE_LBA;
    if (wide) {
        out[8] = (u8)(at >> 24);
        out[9] = (u8)(at >> 32);
        out[10] = (u8)(at >> 40);
        out[13] = (u8)(c->count >> 8);
    } else {
        out[7] |= (u8)(at >> 24 & 15);
    }
    out[12] = (u8)c->count; // 28 bits: 0 is 256
}
