// Mass storage, bulk-only ("USB Mass Storage Class, Bulk-Only Transport", 1.0;
// below BOT): the wrappers of commands and of their status, and the few SCSI
// commands that a stick needs (SPC-3, SBC-2). Pure code; what a device sends is
// not trusted.
#pragma once

#include "lib/types.h"

#define BOT_COMMAND_BYTES 31u // CBW
#define BOT_STATUS_BYTES 13u  // CSW
#define SCSI_COMMAND_MAX 16u
#define SCSI_INQUIRY_BYTES 36u
#define SCSI_CAPACITY_BYTES 8u
#define SCSI_SENSE_BYTES 18u
#define SCSI_MODE_BYTES 192u // as other systems ask for

struct scsi_command {
    u8 bytes[SCSI_COMMAND_MAX];
    u8 length;
    bool in;  // of the data
    u32 data; // bytes
};

// BOT, 5.1
void bot_wrap(u8 out[BOT_COMMAND_BYTES], u32 tag, const struct scsi_command *c);

enum bot_result {
    BOT_GOOD,
    BOT_FAILED, // the sense data say why
    BOT_BROKEN, // not valid, or a phase error: the device must be reset
};
// BOT, 5.2, 6.3 and 6.5. *residue: bytes of the data that were not processed.
enum bot_result bot_unwrap(const u8 *status, size_t n, u32 tag, u32 data,
                           u32 *residue);

struct scsi_command scsi_inquiry(void);
struct scsi_command scsi_test_ready(void);
struct scsi_command scsi_sense(void);
struct scsi_command scsi_capacity(void);
struct scsi_command scsi_mode(void);  // MODE SENSE(6), all pages
struct scsi_command scsi_flush(void); // SYNCHRONIZE CACHE(10)
// READ(10), WRITE(10). 1 <= count < 65536.
struct scsi_command scsi_transfer(bool write, u32 sector, u32 count,
                                  u32 sector_bytes);

// Whether it is a disk; and its name, as it has it, printable.
#define SCSI_NAME_BYTES 26u
bool scsi_parse_inquiry(const u8 *d, size_t n, char name[SCSI_NAME_BYTES]);
// False: none, or larger than 2 TiB.
bool scsi_parse_capacity(const u8 *d, size_t n, u32 *sectors,
                         u32 *sector_bytes);

// Whether writing is forbidden, by a switch say: the bit WP of the answer's
// header (SPC-3, 7.4.3; SBC-2, 6.3.1).
bool scsi_parse_protected(const u8 *d, size_t n);

enum scsi_sense { // SPC-3, table 27: keys
    SENSE_NONE = 0,
    SENSE_NOT_READY = 2,
    SENSE_ATTENTION = 6, // something has changed: the command is repeated
    SENSE_PROTECTED = 7,
    SENSE_UNKNOWN = 0x10, // none that can be read
};
#define SENSE_NO_MEDIUM 0x3a // the additional code
u32 scsi_parse_sense(const u8 *d, size_t n, u8 *additional);
