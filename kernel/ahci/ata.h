// ATA disks (ATA8-ACS): the data of IDENTIFY DEVICE, and commands as a FIS
// (Serial ATA, "Register - Host to Device"). Pure code; what a disk says is not
// trusted.
#pragma once

#include "lib/types.h"

#define ATA_IDENTIFY_BYTES 512u
#define ATA_MODEL_BYTES 41u
#define ATA_SERIAL_BYTES 21u
#define ATA_FIS_BYTES 20u

struct ata_disk {
    u64 sectors;
    u32 sector_bytes;
    bool wide; // addresses of 48 bits
    bool flush, flush_wide;
    char model[ATA_MODEL_BYTES], serial[ATA_SERIAL_BYTES]; // printable
};

// NULL, or why it cannot be used.
const char *ata_parse_identify(const u8 data[ATA_IDENTIFY_BYTES],
                               struct ata_disk *out);

struct ata_command {
    u8 code;
    bool write;
    u64 sector;
    u32 count; // sectors; 0: no data but of IDENTIFY DEVICE
    u32 bytes; // of the data
};
struct ata_command ata_identify(void);
// READ and WRITE DMA, or DMA EXT where addresses have 48 bits. The sectors are
// on the disk; 1 <= count <= 256.
struct ata_command ata_transfer(const struct ata_disk *d, bool write,
                                u64 sector, u32 count);
// FLUSH CACHE, or EXT. False: the disk has no such command.
bool ata_flush(const struct ata_disk *d, struct ata_command *out);
void ata_fis(u8 out[ATA_FIS_BYTES], const struct ata_command *c);
