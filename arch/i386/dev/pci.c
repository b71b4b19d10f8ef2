// PCI functions: enumeration, base addresses, commands. The buses behind
// bridges are found by the numbers that the firmware has given them. What a
// function says is not trusted: each bus is scanned once.
#include "arch/i386/dev/pci_config.h"
#include "lib/assert.h"

enum { // more offsets in the configuration space (PCI 3.0, 6.1)
    PCI_COMMAND = 0x04,
    PCI_BAR = 0x10,
};

#define COMMAND_MEMORY (1u << 1)
#define COMMAND_MASTER (1u << 2)
#define COMMAND_NO_LINE (1u << 10)
#define COMMAND_BITS 0xffffu // above it: status, where ones clear bits

#define BAR_IO 1u
#define BAR_TYPE(v) ((v) >> 1 & 3)
#define BAR_64_BITS 2
#define BAR_FLAGS 15u
#define BARS 6u

struct scan {
    u32 class;
    void (*fn)(const struct pci_function *f, void *arg);
    void *arg;
    bool found[PCI_BUSES]; // buses to scan
};

// False: there is no such function.
static bool visit(struct scan *s, struct pci_function *f, bool *multi)
{
    u32 name = pci_name(f);
    f->vendor = (u16)pci_config_read(name, PCI_VENDOR, 2);
    f->product = (u16)pci_config_read(name, PCI_ID, 2);
    if (f->vendor == PCI_NO_VENDOR || (!f->vendor && !f->product))
        return false;
    f->class = pci_config_read(name, PCI_CLASS, 4) >> 8;
    u32 header = pci_config_read(name, PCI_HEADER, 1);
    *multi = header & PCI_HEADER_MANY;
    if ((header & PCI_HEADER_TYPE) == PCI_HEADER_BRIDGE)
        s->found[pci_config_read(name, PCI_SECONDARY_BUS, 1)] = true;
    if (f->class == s->class)
        s->fn(f, s->arg);
    return true;
}

static void scan_device(struct scan *s, u32 bus, u32 device)
{
    for (u32 i = 0; i < PCI_FUNCTIONS; i++) {
        struct pci_function f = { (u8)bus, (u8)device, (u8)i, 0, 0, 0 };
        bool multi = true;
        if (!visit(s, &f, &multi) && i == 0)
            return;
        if (i == 0 && !multi)
            return;
    }
}

// A bridge's secondary bus has a higher number than its own one.
void pci_each(u32 class, void (*fn)(const struct pci_function *f, void *arg),
              void *arg)
{
    if (!pci_present())
        return;
    struct scan s = { class, fn, arg, .found = { [0] = true } };
    for (u32 bus = 0; bus < PCI_BUSES; bus++) {
        for (u32 device = 0; s.found[bus] && device < PCI_DEVICES; device++)
            scan_device(&s, bus, device);
    }
}

static void set_command(const struct pci_function *f, u32 set, u32 clear)
{
    u32 command = pci_read(f, PCI_COMMAND) & COMMAND_BITS;
    pci_write(f, PCI_COMMAND, (command | set) & ~clear);
}

// The address bits that can be set, which give the size (6.2.5.1).
static u32 writable_bits(const struct pci_function *f, u32 offset)
{
    u32 old = pci_read(f, offset);
    pci_write(f, offset, ~0u);
    u32 bits = pci_read(f, offset);
    pci_write(f, offset, old);
    return bits;
}

bool pci_memory(const struct pci_function *f, u32 index, struct pci_memory *out)
{
    assert(index < BARS);
    u32 offset = PCI_BAR + 4 * index, low = pci_read(f, offset);
    bool wide = BAR_TYPE(low) == BAR_64_BITS;
    if (low & BAR_IO || (wide && index + 1 == BARS))
        return false;
    u32 command = pci_read(f, PCI_COMMAND) & COMMAND_BITS;
    set_command(f, 0, COMMAND_MEMORY);
    u64 bits = writable_bits(f, offset) & ~BAR_FLAGS;
    bits |= (u64)(wide ? writable_bits(f, offset + 4) : ~0u) << 32;
    pci_write(f, PCI_COMMAND, command);
    out->base = low & ~BAR_FLAGS;
    if (wide)
        out->base |= (u64)pci_read(f, offset + 4) << 32;
    out->size = -bits;
    return out->base && (u32)bits;
}

void pci_enable(const struct pci_function *f)
{
    set_command(f, COMMAND_MEMORY | COMMAND_MASTER | COMMAND_NO_LINE, 0);
}

void pci_disable_dma(const struct pci_function *f)
{
    set_command(f, 0, COMMAND_MASTER);
}
