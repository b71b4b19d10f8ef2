// Registers of Intel's 82574 (82574 GbE Controller Family Datasheet) that the
// older 82540EM has, too (PCI/PCI-X Family of Gigabit Ethernet Controllers
// Software Developer's Manual, chapter 13), but for those marked. Section
// numbers are of the latter.
#pragma once

#define E1000_REGISTERS 0x6000u // bytes of the memory that is used

enum {
    REG_CTRL = 0x0000,
    REG_STATUS = 0x0008,
    REG_CTRL_EXT = 0x0018,
    REG_ICR = 0x00c0,   // interrupt causes; ones clear
    REG_ITR = 0x00c4,   // least time between interrupts; 82574
    REG_ICS = 0x00c8,   // causes to set
    REG_IMS = 0x00d0,   // causes that interrupt: to add
    REG_IMC = 0x00d8,   // to remove
    REG_EIAC = 0x00dc,  // causes that are cleared when they interrupt; 82574
    REG_IVAR = 0x00e4,  // MSI-X's vectors; 82574
    REG_EITR0 = 0x00e8, // as ITR, of the first vector; 82574
    REG_RCTL = 0x0100,
    REG_TCTL = 0x0400,
    REG_TIPG = 0x0410,
    REG_RDBAL = 0x2800, // ring: address, length, head, tail
    REG_RDBAH = 0x2804,
    REG_RDLEN = 0x2808,
    REG_RDH = 0x2810,
    REG_RDT = 0x2818,
    REG_RDTR = 0x2820,
    REG_TDBAL = 0x3800,
    REG_TDBAH = 0x3804,
    REG_TDLEN = 0x3808,
    REG_TDH = 0x3810,
    REG_TDT = 0x3818,
    REG_TXDCTL = 0x3828,
    REG_MPC = 0x4010, // missed packets; reading clears it
    REG_MTA = 0x5200, // multicast table, 128 words
    REG_RAL = 0x5400, // the card's address
    REG_RAH = 0x5404,
};
#define MTA_WORDS 128u

#define CTRL_ASDE (1u << 5) // the speed is what the PHY has found
#define CTRL_SLU (1u << 6)  // set link up
#define CTRL_ILOS (1u << 7) // invert loss of signal
#define CTRL_FORCE_SPEED (1u << 11)
#define CTRL_FORCE_DUPLEX (1u << 12)
#define CTRL_RST (1u << 26)
#define CTRL_RECEIVE_PAUSE (1u << 27)
#define CTRL_SEND_PAUSE (1u << 28)
#define CTRL_PHY_RST (1u << 31)

#define STATUS_LINK_UP (1u << 1)
#define STATUS_SPEED(s) ((s) >> 6 & 3)

#define CTRL_EXT_DRIVER (1u << 28) // a driver is there; 82574

#define CAUSE_LINK (1u << 2)
#define CAUSE_RX_LOW (1u << 4)
#define CAUSE_RX_OVERRUN (1u << 6)
#define CAUSE_RX (1u << 7)
#define CAUSE_RX_QUEUE0 (1u << 20) // with MSI-X
#define CAUSE_OTHER (1u << 24)     // with MSI-X

// Each cause to vector 0: four bits each for both receive queues, both transmit
// queues and the others, of which the highest is "valid".
#define IVAR_ALL_TO_0 0x88888u
#define ITR_50_US 195u // in units of 256 ns

#define RCTL_ENABLE (1u << 1)
#define RCTL_BROADCAST (1u << 15)
#define RCTL_STRIP_CRC (1u << 26) // and buffers of 2048 bytes

#define TCTL_ENABLE (1u << 1)
#define TCTL_PAD (1u << 3)
#define TCTL_COLLISIONS (15u << 4)
#define TCTL_DISTANCE (0x40u << 12)    // COLD: 64 bytes, full duplex (13.4.33)
#define TCTL_MULTIPLE_READS (1u << 28) // must be set; 82574
#define TXDCTL_MUST_BE_SET (1u << 22)  // 82574

// 13.4.34; IPGT is 8 for the 82574
#define TIPG_OF(t, r1, r2) ((t) | (r1) << 10 | (r2) << 20)

#define RAH_VALID (1u << 31)

// Legacy descriptors (receive 3.2.3, transmit 3.3.3):
// the address's halves, then
struct e1000_descriptor {
    u32 address, address_high;
    u32 length; // bytes; of a transmit descriptor: and the command
    u32 status;
};
#define RX_LENGTH(d) ((d)&0xffffu)
#define RX_DONE (1u << 0)
#define RX_END (1u << 1)
#define RX_ERRORS(status) ((status) >> 8 & 0xff)
#define TX_END (1u << 24)
#define TX_ADD_CRC (1u << 25)
#define TX_REPORT (1u << 27)
#define TX_DONE (1u << 0)
