// PCI functions: enumeration, base addresses, commands. The buses behind
// bridges are found by the numbers that the firmware has given them. What a
// function says is not trusted: each bus is scanned once.
//
// A machine with several host bridges has more buses that are behind no bridge,
// which only methods in ACPI's AML name. So all numbers are tried, but not on
// old machines, whose host bridges may show devices of bus 0 on others, too.
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

#define BASE_CLASS 0xff0000u
#define CLASS_BRIDGE 0x060400u // PCI to PCI
#define CAPABILITY_POWER 0x01  // PCI Power Management 1.2, 3.2
#define POWER_STATE 3u         // of its control register; 0: D0
#define POWER_STATUS_CLEARS (1u << 15)
#define POWER_UP_MS 10u // from D3: table 5-6

struct scan {
    u32 class, mask;
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
    if ((f->class & s->mask) == s->class)
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
static void scan_all(u32 class, u32 mask,
                     void (*fn)(const struct pci_function *f, void *arg),
                     void *arg)
{
    if (!pci_present())
        return;
    struct scan s = { class, mask, fn, arg, .found = { [0] = true } };
    bool all = pci_express_present();
    for (u32 bus = 0; bus < PCI_BUSES; bus++) {
        bool scanned = all || s.found[bus];
        for (u32 device = 0; scanned && device < PCI_DEVICES; device++)
            scan_device(&s, bus, device);
    }
}

void pci_each(u32 class, void (*fn)(const struct pci_function *f, void *arg),
              void *arg)
{
    scan_all(class, ~0u, fn, arg);
}

void pci_each_of_base(u32 class,
                      void (*fn)(const struct pci_function *f, void *arg),
                      void *arg)
{
    scan_all(class, BASE_CLASS, fn, arg);
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

// Firmware may leave a device that it does not use in a power-saving state. On
// the way out of D3 a function may be reset: its base addresses are set again.
static void power_up(const struct pci_function *f)
{
    u32 at = pci_capability(f, CAPABILITY_POWER), bars[BARS];
    if (!at || at + 8 > PCI_CONFIG_BYTES ||
        !(pci_read(f, at + 4) & POWER_STATE))
        return;
    for (u32 i = 0; i < BARS; i++)
        bars[i] = pci_read(f, PCI_BAR + 4 * i);
    u32 control = pci_read(f, at + 4);
    pci_write(f, at + 4, control & ~(POWER_STATE | POWER_STATUS_CLEARS));
    pci_wait_ms(POWER_UP_MS);
    for (u32 i = 0; i < BARS; i++)
        pci_write(f, PCI_BAR + 4 * i, bars[i]);
}

struct upstream {
    u32 bus; // whose bridge is wanted
    struct pci_function bridge;
    bool found;
};

static void look_upstream(const struct pci_function *f, void *arg)
{
    struct upstream *u = arg;
    u32 bus = pci_config_read(pci_name(f), PCI_SECONDARY_BUS, 1);
    if (bus == u->bus && f->bus < bus)
        u->bridge = *f;
    u->found |= bus == u->bus && f->bus < bus;
}

// Firmware that does not trust devices may leave their bridges so that they
// pass no accesses to memory on.
static void enable_bridges(u32 bus)
{
    struct upstream u = { .bus = bus, .found = true };
    while (u.bus && u.found) {
        u.found = false;
        pci_each(CLASS_BRIDGE, look_upstream, &u);
        if (u.found)
            set_command(&u.bridge, COMMAND_MEMORY | COMMAND_MASTER, 0);
        u.bus = u.bridge.bus;
    }
}

void pci_enable(const struct pci_function *f)
{
    enable_bridges(f->bus);
    power_up(f);
    set_command(f, COMMAND_MEMORY | COMMAND_MASTER | COMMAND_NO_LINE, 0);
}

u32 pci_register(const struct pci_function *f, u32 at)
{
    return pci_read(f, at);
}

void pci_set_register(const struct pci_function *f, u32 at, u32 value)
{
    pci_write(f, at, value);
}

void pci_disable_dma(const struct pci_function *f)
{
    set_command(f, 0, COMMAND_MASTER);
}
