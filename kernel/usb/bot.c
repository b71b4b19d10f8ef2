// Bulk-only transport and SCSI, as bytes; see bot.h.
#include "kernel/usb/bot.h"
#include "lib/assert.h"
#include "lib/string.h"

#define COMMAND_SIGNATURE 0x43425355u // "USBC"
#define STATUS_SIGNATURE 0x53425355u  // "USBS"
#define COMMAND_IN 0x80
#define STATUS_GOOD 0
#define STATUS_FAILED 1

enum {
    TEST_UNIT_READY = 0x00,
    REQUEST_SENSE = 0x03,
    INQUIRY = 0x12,
    MODE_SENSE_6 = 0x1a,
    READ_CAPACITY_10 = 0x25,
    READ_10 = 0x28,
    WRITE_10 = 0x2a,
    SYNCHRONIZE_CACHE_10 = 0x35,
};
#define PERIPHERAL 0x1f // INQUIRY; 0: a disk
#define VENDOR_AT 8u
#define VENDOR_BYTES 8u
#define PRODUCT_AT 16u
#define PRODUCT_BYTES 16u
#define ALL_PAGES 0x3f // MODE SENSE
#define MODE_DEVICE_AT 2u
#define MODE_WRITE_PROTECTED 0x80
#define SENSE_FORMAT 0x7f // 0x70: fixed, current
#define SENSE_FIXED 0x70
#define SENSE_KEY 0x0f
#define CODE_AT 12u

static void put_little(u8 *p, u32 v)
{
    for (u32 i = 0; i < 4; i++)
        p[i] = (u8)(v >> 8 * i);
}

static u32 little(const u8 *p)
{
    return p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
}

static u32 big(const u8 *p)
{
    return p[3] | (u32)p[2] << 8 | (u32)p[1] << 16 | (u32)p[0] << 24;
}

void bot_wrap(u8 out[BOT_COMMAND_BYTES], u32 tag, const struct scsi_command *c)
{
    assert(c->length && c->length <= SCSI_COMMAND_MAX);
    memset(out, 0, BOT_COMMAND_BYTES);
    put_little(out, COMMAND_SIGNATURE);
    put_little(out + 4, tag);
    put_little(out + 8, c->data);
    out[12] = c->in ? COMMAND_IN : 0;
    out[14] = c->length;
    memcpy(out + 15, c->bytes, c->length);
}

enum bot_result bot_unwrap(const u8 *s, size_t n, u32 tag, u32 data,
                           u32 *residue)
{
    if (n != BOT_STATUS_BYTES || little(s) != STATUS_SIGNATURE ||
        little(s + 4) != tag || s[12] > STATUS_FAILED)
        return BOT_BROKEN;
    *residue = little(s + 8);
    if (*residue > data)
        return BOT_BROKEN;
    return s[12] == STATUS_GOOD ? BOT_GOOD : BOT_FAILED;
}

struct scsi_command scsi_inquiry(void)
{
    return (struct scsi_command){
        .bytes = { INQUIRY, 0, 0, 0, SCSI_INQUIRY_BYTES },
        .length = 6,
        .in = true,
        .data = SCSI_INQUIRY_BYTES,
    };
}

struct scsi_command scsi_test_ready(void)
{
    return (struct scsi_command){ .bytes = { TEST_UNIT_READY }, .length = 6 };
}

struct scsi_command scsi_sense(void)
{
    return (struct scsi_command){
        .bytes = { REQUEST_SENSE, 0, 0, 0, SCSI_SENSE_BYTES },
        .length = 6,
        .in = true,
        .data = SCSI_SENSE_BYTES,
    };
}

struct scsi_command scsi_capacity(void)
{
    return (struct scsi_command){ .bytes = { READ_CAPACITY_10 },
                                  .length = 10,
                                  .in = true,
                                  .data = SCSI_CAPACITY_BYTES };
}

struct scsi_command scsi_mode(void)
{
    return (struct scsi_command){
        .bytes = { MODE_SENSE_6, 0, ALL_PAGES, 0, SCSI_MODE_BYTES },
        .length = 6,
        .in = true,
        .data = SCSI_MODE_BYTES,
    };
}

struct scsi_command scsi_flush(void)
{
    return (struct scsi_command){ .bytes = { SYNCHRONIZE_CACHE_10 },
                                  .length = 10 };
}

struct scsi_command scsi_transfer(bool write, u32 sector, u32 count,
                                  u32 sector_bytes)
{
    assert(count && count <= 0xffff);
    return (struct scsi_command){
        .bytes = { write ? WRITE_10 : READ_10, 0, (u8)(sector >> 24),
                   (u8)(sector >> 16), (u8)(sector >> 8), (u8)sector, 0,
                   (u8)(count >> 8), (u8)count },
        .length = 10,
        .in = !write,
        .data = count * sector_bytes,
    };
}

static u32 take_text(const u8 *d, u32 n, char *out)
{
    while (n && (d[n - 1] == ' ' || !d[n - 1]))
        n--;
    for (u32 i = 0; i < n; i++)
        out[i] = d[i] >= ' ' && d[i] < 0x7f ? (char)d[i] : '?';
    return n;
}

bool scsi_parse_inquiry(const u8 *d, size_t n, char name[SCSI_NAME_BYTES])
{
    if (n < SCSI_INQUIRY_BYTES || d[0] & PERIPHERAL)
        return false;
    u32 length = take_text(d + VENDOR_AT, VENDOR_BYTES, name);
    if (length)
        name[length++] = ' ';
    length += take_text(d + PRODUCT_AT, PRODUCT_BYTES, name + length);
    name[length] = 0;
    return true;
}

bool scsi_parse_capacity(const u8 *d, size_t n, u32 *sectors, u32 *sector_bytes)
{
    if (n < SCSI_CAPACITY_BYTES || big(d) == ~0u)
        return false;
    *sectors = big(d) + 1;
    *sector_bytes = big(d + 4);
    return true;
}

bool scsi_parse_protected(const u8 *d, size_t n)
{
    return n > MODE_DEVICE_AT && d[MODE_DEVICE_AT] & MODE_WRITE_PROTECTED;
}

u32 scsi_parse_sense(const u8 *d, size_t n, u8 *additional)
{
    *additional = 0;
    if (n < 3 || (d[0] & SENSE_FORMAT) != SENSE_FIXED)
        return SENSE_UNKNOWN;
    if (n > CODE_AT)
        *additional = d[CODE_AT];
    return d[2] & SENSE_KEY;
}
