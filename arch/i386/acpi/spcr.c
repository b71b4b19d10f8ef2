// The table SPCR; see spcr.h. A port in memory is not supported, nor an
// interrupt that is none of the ISA bus.
#include "arch/i386/acpi/spcr.h"
#include "lib/string.h"

struct spcr {
    struct acpi_header header;
    u8 kind, reserved[3];
    struct acpi_address base;
    u8 interrupt_kinds, irq;
    u32 gsi;
    u8 rate, parity, stop_bits, flow_control, terminal, language;
    u16 pci_device, pci_vendor;
    u8 bus, device, function;
    u32 pci_flags;
    u8 segment;
    u32 clock;      // 0: 1.8432 MHz; with `exact_rate` from revision 4 on
    u32 exact_rate; // 0: as `rate` says
} PACKED;
_Static_assert(offsetof(struct spcr, rate) == 58 && sizeof(struct spcr) == 84,
               "SPCR, table layout");

#define SIZE_LEAST offsetof(struct spcr, clock)
#define REVISION_EXACT 4

#define KIND_16550 0x00
#define KIND_16550_SUBSET 0x01  // with DBGP's registers; 16450 in revision 1
#define KIND_16550_ADDRESS 0x12 // as the address structure says
#define INTERRUPT_8259 0x01
#define ISA_IRQ_MAX 15
#define PORTS 8u // that a 16550 has
#define CLOCK 1843200u
#define CLOCKS_PER_BIT 16u
#define DIVISOR_MAX 0xffffu

struct spcr_port spcr_port;
const char *spcr_problem = "there is none";

// False: an unknown code.
static bool rate_of(u8 code, u32 *rate)
{
    switch (code) {
    case 0:
        *rate = 0;
        return true;
    case 3:
        *rate = 9600;
        return true;
    case 4:
        *rate = 19200;
        return true;
    case 6:
        *rate = 57600;
        return true;
    case 7:
        *rate = 115200;
        return true;
    default:
        return false;
    }
}

// False: the port's clock cannot be divided for it.
static bool find_divisor(const struct spcr *s, struct spcr_port *out)
{
    if (!out->rate)
        return true;
    u32 clock = s->clock ? s->clock : CLOCK;
    u64 per_bit = (u64)out->rate * CLOCKS_PER_BIT;
    if (per_bit > clock || clock / (u32)per_bit > DIVISOR_MAX)
        return false;
    out->divisor = (u16)(clock / (u32)per_bit);
    return true;
}

static bool is_byte_wide(const struct acpi_address *a)
{
    return (a->width == 8 || !a->width) && a->access <= 1 && !a->offset;
}

const char *spcr_parse(const struct acpi_header *table, struct spcr_port *out)
{
    struct spcr s = { 0 };
    memset(out, 0, sizeof(*out));
    if (table->length < SIZE_LEAST)
        return "it is too short";
    memcpy(&s, table, MIN(table->length, sizeof(s)));
    if (table->length < sizeof(s) || s.header.revision < REVISION_EXACT)
        s.clock = s.exact_rate = 0;
    if (s.kind != KIND_16550 && s.kind != KIND_16550_SUBSET &&
        s.kind != KIND_16550_ADDRESS)
        return "its port is no 16550";
    if (!s.base.address)
        return "it says that the firmware uses no serial port";
    if (s.base.space != ACPI_SPACE_IO)
        return "its port is not in the I/O space";
    if (!is_byte_wide(&s.base) || s.base.address > 0x10000 - PORTS)
        return "its port's registers are no bytes at I/O ports";
    out->port = (u16)s.base.address;
    if (s.interrupt_kinds & INTERRUPT_8259 && s.irq <= ISA_IRQ_MAX)
        out->irq = s.irq;
    if (!rate_of(s.rate, &out->rate) && !s.exact_rate)
        return "its rate is unknown";
    if (s.exact_rate)
        out->rate = s.exact_rate;
    return find_divisor(&s, out) ? NULL : "its rate is impossible";
}

void spcr_read(const struct acpi_header *table)
{
    spcr_problem = spcr_parse(table, &spcr_port);
}
