// hardware.pci: the functions on all buses, each with its header, base address
// registers (as they are: their sizes would have to be probed by writing) and
// capabilities (PCI Local Bus 3.0, 6.1, 6.2, 6.7).
#include "arch/i386/dev/pci_config.h"
#include "kernel/base/providers.h"
#include "kernel/mm/chain.h"

#define STATUS 0x06
#define STATUS_CAPABILITIES 0x10u
#define BAR_FIRST 0x10
#define BARS_OF_DEVICE 6u
#define BARS_OF_BRIDGE 2u
#define CAPABILITIES 0x34
#define CAPABILITIES_MAX 48u // 256 bytes hold no more: the list is a circle
#define HEADER_BYTES 64u

#define BAR_IO 1u
#define BAR_64BIT(bar) (((bar)&6) == 4)
#define BAR_PREFETCHABLE 8u

static const char *capability_name(u32 id)
{
    static const char *const names[] = {
        [0x01] = "power management",
        [0x02] = "AGP",
        [0x03] = "vital product data",
        [0x04] = "slot",
        [0x05] = "MSI",
        [0x06] = "CompactPCI hot swap",
        [0x07] = "PCI-X",
        [0x08] = "HyperTransport",
        [0x09] = "vendor",
        [0x0a] = "debug port",
        [0x0c] = "hot plug",
        [0x0d] = "subsystem",
        [0x0e] = "AGP 8x",
        [0x10] = "PCI Express",
        [0x11] = "MSI-X",
        [0x12] = "SATA",
        [0x13] = "advanced features",
        [0x14] = "enhanced allocation",
    };
    return id < ARRAY_SIZE(names) && names[id] ? names[id] : "unknown";
}

static void report_bars(struct chain *out, u32 f, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        u32 low = pci_config_read(f, BAR_FIRST + 4 * i, 4), high = 0, bar = i;
        if (!low)
            continue;
        if (low & BAR_IO) {
            chain_printf(out, "    BAR %u: ports %#x\n", bar, low & ~3u);
            continue;
        }
        if (BAR_64BIT(low) && i + 1 < count)
            high = pci_config_read(f, BAR_FIRST + 4 * ++i, 4);
        chain_printf(out, "    BAR %u: memory %#llx%s%s\n", bar,
                     (u64)high << 32 | (low & ~0xfu),
                     BAR_64BIT(low) ? ", 64 bits" : "",
                     low & BAR_PREFETCHABLE ? ", prefetchable" : "");
    }
}

static void report_capabilities(struct chain *out, u32 f)
{
    if (!(pci_config_read(f, STATUS, 2) & STATUS_CAPABILITIES))
        return;
    u32 at = pci_config_read(f, CAPABILITIES, 1) & ~3u;
    for (u32 i = 0; at >= HEADER_BYTES && i < CAPABILITIES_MAX; i++) {
        u32 id = pci_config_read(f, at, 1);
        chain_printf(out, "    capability %#x at %#x: %s\n", id, at,
                     capability_name(id));
        at = pci_config_read(f, at + 1, 1) & ~3u;
    }
}

static void report_header(struct chain *out, u32 f)
{
    for (u32 at = 0; at < HEADER_BYTES; at += 4) {
        if (at % 16 == 0)
            chain_printf(out, "    %02x:", at);
        chain_printf(out, " %08x%s", pci_config_read(f, at, 4),
                     at % 16 == 12 ? "\n" : "");
    }
}

static void report_function(struct chain *out, u32 f)
{
    u32 class = pci_config_read(f, PCI_CLASS, 4);
    u32 header = pci_config_read(f, PCI_HEADER, 1) & PCI_HEADER_TYPE;
    u32 interrupt = pci_config_read(f, PCI_INTERRUPT, 2);
    chain_printf(out, "%02x:%02x.%u %04x:%04x class %06x revision %02x",
                 PCI_BUS(f), PCI_DEVICE(f), PCI_NUMBER(f),
                 pci_config_read(f, PCI_VENDOR, 2),
                 pci_config_read(f, PCI_ID, 2), class >> 8, class & 0xff);
    if (interrupt >> 8)
        chain_printf(out, ", interrupt line %u pin %u", interrupt & 0xff,
                     interrupt >> 8);
    if (header == PCI_HEADER_BRIDGE)
        chain_printf(out, ", bridge to bus %02x",
                     pci_config_read(f, PCI_SECONDARY_BUS, 1));
    chain_printf(out, "\n");
    if (header <= PCI_HEADER_BRIDGE)
        report_bars(out, f, header ? BARS_OF_BRIDGE : BARS_OF_DEVICE);
    report_capabilities(out, f);
    report_header(out, f);
}

static u32 report_device(struct chain *out, u32 first)
{
    u32 functions = 1, found = 0;
    for (u32 i = 0; i < functions; i++) {
        if (pci_config_read(first + i, PCI_VENDOR, 2) == PCI_NO_VENDOR)
            continue;
        if (!i && pci_config_read(first, PCI_HEADER, 1) & PCI_HEADER_MANY)
            functions = PCI_FUNCTIONS;
        report_function(out, first + i);
        found++;
    }
    return found;
}

void pci_report(struct chain *out)
{
    u32 found = 0;
    if (!pci_present()) {
        chain_printf(out, "not there: no configuration mechanism 1\n");
        return;
    }
    for (u32 bus = 0; bus < PCI_BUSES; bus++) {
        for (u32 device = 0; device < PCI_DEVICES; device++)
            found += report_device(out, PCI_FUNCTION(bus, device, 0));
    }
    chain_printf(out, "%u functions\n", found);
}
