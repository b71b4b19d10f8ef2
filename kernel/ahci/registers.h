// Registers and structures of AHCI controllers (Serial ATA AHCI 1.3.1; below
// AHCI).
#pragma once

#include "lib/types.h"

#define AHCI_REGISTERS 0x1100u // 3: 32 ports

enum {                 // 3.1, generic host control
    HBA_GHC = 0x04,    // 3.1.2
    HBA_IS = 0x08,     // 3.1.3; ones clear
    HBA_PI = 0x0c,     // 3.1.4: ports that are implemented
    HBA_VS = 0x10,     // 3.1.5: the version
    HBA_CAP2 = 0x24,   // 3.1.10
    HBA_BOHC = 0x28,   // 3.1.11
    HBA_PORTS = 0x100, // 3.3, 0x80 bytes each
};
#define PORT_BYTES 0x80u
#define PORTS_MOST 32u
#define GHC_RESET (1u << 0)      // HR
#define GHC_INTERRUPTS (1u << 1) // IE
#define GHC_AHCI (1u << 31)      // AE
#define VS_HANDOFF 0x10200u      // CAP2 and BOHC are there from 1.2 on
#define CAP2_HANDOFF (1u << 0)   // BOH
#define BOHC_BIOS (1u << 0)      // BOS
#define BOHC_OS (1u << 1)        // OOS
#define BOHC_BUSY (1u << 4)      // BB

enum { // 3.3, of a port
    PORT_CLB = 0x00,
    PORT_CLBU = 0x04,
    PORT_FB = 0x08,
    PORT_FBU = 0x0c,
    PORT_IS = 0x10,   // 3.3.5; ones clear
    PORT_IE = 0x14,   // 3.3.6: the same bits
    PORT_CMD = 0x18,  // 3.3.7
    PORT_TFD = 0x20,  // 3.3.8: task file
    PORT_SIG = 0x24,  // 3.3.9
    PORT_SSTS = 0x28, // 3.3.10
    PORT_SCTL = 0x2c, // 3.3.11
    PORT_SERR = 0x30, // 3.3.12; ones clear
    PORT_CI = 0x38,   // 3.3.14
};

#define IS_FIS_REGISTER (1u << 0)     // DHRS
#define IS_FIS_PIO (1u << 1)          // PSS
#define IS_CONNECT (1u << 6)          // PCS
#define IS_PHY_READY (1u << 22)       // PRCS
#define IS_OVERFLOW (1u << 24)        // OFS
#define IS_INTERFACE_FATAL (1u << 27) // IFS
#define IS_BUS_DATA (1u << 28)        // HBDS
#define IS_BUS_FATAL (1u << 29)       // HBFS
#define IS_TASK_FILE (1u << 30)       // TFES
// Those that end a command (6.2.2.1).
#define IS_ERRORS                                                    \
    (IS_OVERFLOW | IS_INTERFACE_FATAL | IS_BUS_DATA | IS_BUS_FATAL | \
     IS_TASK_FILE)

#define CMD_START (1u << 0)        // ST
#define CMD_SPIN_UP (1u << 1)      // SUD
#define CMD_POWER (1u << 2)        // POD
#define CMD_FIS (1u << 4)          // FRE
#define CMD_FIS_RUNS (1u << 14)    // FR
#define CMD_RUNS (1u << 15)        // CR
#define CMD_POWER_KNOWN (1u << 20) // CPD
#define CMD_ATAPI (1u << 24)
#define CMD_ACTIVE (1u << 28) // ICC: the link leaves its power states
#define CMD_ICC (15u << 28)

#define TFD_ERROR (1u << 0) // STS.ERR
#define TFD_REQUEST (1u << 3)
#define TFD_FAULT (1u << 5) // ATA8-ACS, "Status field": device fault
#define TFD_BUSY (1u << 7)
#define TFD_CODE(tfd) ((tfd) >> 8 & 0xff) // ERR
#define CODE_CRC (1u << 7) // ICRC: the data were damaged on the cable

#define SIGNATURE_ATA 0x00000101u // Serial ATA, "Device reset": software finds
#define SIGNATURE_ATAPI 0xeb140101u
#define SIGNATURE_NONE 0xffffffffu

#define SSTS_DET(ssts) ((ssts)&15)
#define DET_NOTHING 0u
#define DET_READY 3u // a device, and the link is up
#define SCTL_RESET 1u
#define SERR_PHY_READY (1u << 16)      // DIAG.N: shown as IS_PHY_READY
#define SERR_EXCHANGED (1u << 26)      // DIAG.X: shown as IS_CONNECT
#define SCTL_NO_POWER_STATES (3u << 8) // IPM: neither partial nor slumber

// The command list (4.2.2): one command at a time, slot 0.
struct ahci_header {
    u32 flags; // and the number of regions, in the upper half
    u32 moved; // PRDBC: bytes
    u32 table, table_high;
    u32 reserved[4];
};
#define HEADER_FIS_WORDS 5u // CFL
#define HEADER_WRITE (1u << 6)
#define HEADER_ONE_REGION (1u << 16) // PRDTL

// The command table (4.2.3), with one region.
struct ahci_table {
    u8 fis[64];
    u8 atapi[16];
    u8 reserved[48];
    u32 region, region_high, reserved2;
    u32 region_bytes; // minus 1
};

// What a port is given: a page (the alignments: 3.3.1, 3.3.3, 4.2.2).
struct ahci_memory {
    struct ahci_header list[32]; // 1 KiB
    u8 received[256];            // 4.2.1
    struct ahci_table table;     // at a multiple of 128
};
