// Registers and codes of xHCI controllers (xHCI 1.2, chapters 5 and 6).
#pragma once

enum {                 // capability registers, 5.3
    CAP_LENGTH = 0x00, // and the version, in the upper half
    CAP_STRUCTURE1 = 0x04,
    CAP_STRUCTURE2 = 0x08,
    CAP_PARAMETERS1 = 0x10,
    CAP_DOORBELLS = 0x14,
    CAP_RUNTIME = 0x18,
};
#define SLOTS_OF(structure1) ((structure1)&0xff)
#define PORTS_OF(structure1) ((structure1) >> 24)
#define SCRATCHPADS_OF(structure2) \
    (((structure2) >> 21 & 31) << 5 | (structure2) >> 27)
#define PARAMETER_LARGE_CONTEXTS (1u << 2)
#define PARAMETER_PORT_POWER (1u << 3)
#define EXTENDED_OF(parameters1) ((parameters1) >> 16) // in words

enum { // operational registers, 5.4
    OP_COMMAND = 0x00,
    OP_STATUS = 0x04,
    OP_PAGE_SIZE = 0x08,
    OP_COMMAND_RING = 0x18,
    OP_CONTEXTS = 0x30,
    OP_CONFIG = 0x38,
    OP_PORTS = 0x400, // 16 bytes each
};
#define COMMAND_RUN (1u << 0)
#define COMMAND_RESET (1u << 1)
#define COMMAND_INTERRUPTS (1u << 2)
#define STATUS_HALTED (1u << 0)
#define STATUS_HOST_ERROR (1u << 2)
#define STATUS_EVENT (1u << 3)
#define STATUS_NOT_READY (1u << 11)
#define STATUS_CONTROLLER_ERROR (1u << 12)
#define PAGE_SIZE_4K 1u

// PORTSC, 5.4.8
#define PORT_CONNECTED (1u << 0)
#define PORT_ENABLED (1u << 1) // writing 1 disables
#define PORT_RESET (1u << 4)
#define PORT_POWER (1u << 9)
#define PORT_SPEED(v) ((v) >> 10 & 15)
#define PORT_CONNECT_CHANGE (1u << 17)
#define PORT_CHANGES (0x7fu << 17)                   // writing 1 clears
#define PORT_KEEP (PORT_POWER | 3u << 14 | 7u << 25) // power, LEDs, wake-up

enum { // runtime registers of interrupter 0, 5.5
    RUN_IMAN = 0x20,
    RUN_IMOD = 0x24,
    RUN_TABLE_SIZE = 0x28,
    RUN_TABLE = 0x30,
    RUN_DEQUEUE = 0x38,
};
#define IMAN_PENDING 1u
#define IMAN_ENABLE 2u
#define DEQUEUE_BUSY 8u
#define IMOD_250NS 4000u // at most one interrupt a millisecond

// Legacy support, 7.1
#define EXTENDED_LEGACY 1u
#define LEGACY_BIOS (1u << 16)
#define LEGACY_OS (1u << 24)
#define LEGACY_CONTROL 4
#define LEGACY_SMI_OFF 0x000e1feeu // bits to keep; the enables are cleared
#define LEGACY_SMI_EVENTS 0xe0000000u

enum { // types of TRBs, table 6-91
    TRB_NORMAL = 1,
    TRB_SETUP = 2,
    TRB_DATA = 3,
    TRB_STATUS = 4,
    TRB_ENABLE_SLOT = 9,
    TRB_DISABLE_SLOT = 10,
    TRB_ADDRESS_DEVICE = 11,
    TRB_CONFIGURE_ENDPOINT = 12,
    TRB_EVALUATE_CONTEXT = 13,
    TRB_RESET_ENDPOINT = 14,
    TRB_STOP_ENDPOINT = 15,
    TRB_SET_DEQUEUE = 16,
    TRB_NO_OP = 23,
    EVENT_TRANSFER = 32,
    EVENT_COMMAND = 33,
    EVENT_PORT = 34,
};
#define TRB_SLOT(n) ((u32)(n) << 24)
#define TRB_SLOT_OF(control) ((control) >> 24)
#define TRB_ENDPOINT(n) ((u32)(n) << 16)
#define TRB_ENDPOINT_OF(control) ((control) >> 16 & 31)
#define SETUP_IN (3u << 16)
#define SETUP_OUT (2u << 16)
#define EVENT_CODE(status) ((status) >> 24)
#define EVENT_RESIDUE(status) ((status)&0xffffff)

enum { // completion codes, table 6-90
    CODE_NONE = 0,
    CODE_SUCCESS = 1,
    CODE_BABBLE = 3,
    CODE_TRANSACTION = 4,
    CODE_STALL = 6,
    CODE_SHORT = 13,
    CODE_STOPPED_FIRST = 26, // stopped, in three ways
    CODE_STOPPED_LAST = 28,
};
