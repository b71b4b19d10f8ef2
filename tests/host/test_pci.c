// PCI functions: enumeration behind bridges and without them, base addresses,
// messages, and what firmware leaves switched off, on configuration spaces that
// are right, and on random ones.
// link: arch/i386/dev/pci.c arch/i386/dev/pci_messages.c
// link: kernel/usb/intel_ports.c
#include "test.h"

#include "arch/i386/dev/pci_config.h"
#include "kernel/base/errno.h"
#include "kernel/usb/intel_ports.h"

#define XHCI 0x0c0330u
#define EHCI 0x0c0320u
#define BRIDGE 0x060400u

// --- the machine

struct function {
    struct pci_function at;
    u32 words[64];
    u32 address_bits[6]; // that can be written in base addresses
};
static struct function functions[4];
static u32 function_count, reads;
static bool noise; // all functions exist, and say anything
static bool express;
static u32 waited_ms;
static u32 table[4];
static u32 mapped_size;
static paddr_t mapped;

static struct function *find(u32 name)
{
    for (u32 i = 0; i < function_count; i++) {
        if (pci_name(&functions[i].at) == name)
            return &functions[i];
    }
    return NULL;
}

bool pci_present(void)
{
    return true;
}

bool pci_express_present(void)
{
    return express;
}

void pci_wait_ms(u32 ms)
{
    waited_ms += ms;
}

u32 pci_config_read(u32 name, u32 at, u32 bytes)
{
    assert_true(at < 256 && bytes <= 4 && at % bytes == 0);
    reads++;
    if (noise)
        return (u32)random_u64() >> (32 - 8 * bytes);
    struct function *found = find(name);
    u32 value = found ? found->words[at / 4] >> (at % 4 * 8) : ~0u;
    return bytes < 4 ? value & ((1u << (8 * bytes)) - 1) : value;
}

void pci_config_write(u32 name, u32 at, u32 bytes, u32 value)
{
    assert_true(at < 256 && bytes == 4 && at % 4 == 0);
    struct function *found = find(name);
    if (noise || !found)
        return;
    // Out of D3: a reset.
    if (found->words[0x40 / 4] == 0x00000001 && at == 0x44 &&
        found->words[0x44 / 4] & 3 && !(value & 3))
        memset(&found->words[4], 0, 24);
    if (at >= 0x10 && at < 0x28) {
        u32 bits = found->address_bits[(at - 0x10) / 4];
        value = (value & bits) | (found->words[at / 4] & ~bits);
    }
    found->words[at / 4] = value;
}

void *map_device(paddr_t base, size_t size)
{
    mapped = base;
    mapped_size = (u32)size;
    return size <= sizeof(table) ? table : NULL;
}

static u32 *add(u32 bus, u32 device, u32 class)
{
    struct function *f = &functions[function_count++];
    memset(f, 0, sizeof(*f));
    f->at = (struct pci_function){ .bus = (u8)bus, .device = (u8)device };
    f->words[0] = 0x12348086;
    f->words[2] = class << 8;
    return f->words;
}

static void begin(void)
{
    function_count = reads = 0;
    noise = express = false;
    memset(table, 0xff, sizeof(table));
}

// --- tests

static u32 seen;
static struct pci_function last;

static void see(const struct pci_function *f, void *arg UNUSED)
{
    seen++;
    last = *f;
}

static void behind_bridges(void **state UNUSED)
{
    begin();
    u32 *bridge = add(0, 3, 0x060400);
    bridge[3] = 1 << 16; // type 1
    bridge[6] = 0x000700;
    u32 *second = add(7, 0, 0x060400);
    second[3] = 1 << 16;
    second[6] = 0x000700; // a circle
    add(7, 31, XHCI);
    seen = 0;
    pci_each(XHCI, see, NULL);
    assert_int_equal(seen, 1);
    assert_int_equal(last.bus, 7);
    assert_int_equal(last.device, 31);
    assert_int_equal(last.vendor, 0x8086);
    assert_int_equal(last.product, 0x1234);
    pci_each(0x010601, see, NULL);
    assert_int_equal(seen, 1);
    pci_each_of_base(0x0c0000, see, NULL);
    assert_int_equal(seen, 2);
}

// Of several host bridges.
static void buses_without_bridges(void **state UNUSED)
{
    begin();
    add(0x80, 5, XHCI);
    add(0xff, 0, XHCI);
    seen = 0;
    pci_each(XHCI, see, NULL);
    assert_int_equal(seen, 0);
    express = true;
    pci_each(XHCI, see, NULL);
    assert_int_equal(seen, 2);
    assert_int_equal(last.bus, 0xff);
    pci_enable(&last); // no bridge leads there
    assert_int_equal(functions[1].words[1] & 0xffff, 0x406);
}

// Whether an xHCI takes its ports, beside an EHCI of this vendor (0: none).
static bool takes_ports(u16 vendor, u16 product, u16 ehci)
{
    begin();
    u32 *w = add(0, 20, XHCI);
    w[0] = vendor | (u32)product << 16;
    w[0xd4 / 4] = 0x7fff;
    w[0xdc / 4] = 0x3f;
    if (ehci)
        *add(0, 29, EHCI) = ehci | 0x8d260000u;
    pci_each(XHCI, see, NULL);
    intel_ports_take(&last);
    assert_int_equal(w[0xd4 / 4], 0x7fff);
    assert_int_equal(w[0xdc / 4], 0x3f);
    assert_true((w[0xd0 / 4] == 0x7fff) == (w[0xd8 / 4] == 0x3f));
    return w[0xd0 / 4];
}

// C610 and Bay Trail, a chipset that has none of Intel's EHCIs, other makers'.
static void ports_of_intel(void **state UNUSED)
{
    assert_true(takes_ports(0x8086, 0x8d31, 0x8086));
    assert_true(takes_ports(0x8086, 0x0f35, 0x8086));
    assert_true(takes_ports(0x8086, 0x1e31, 0x8086));
    assert_false(takes_ports(0x8086, 0xa12f, 0));
    assert_false(takes_ports(0x8086, 0xa12f, 0x1033));
    assert_false(takes_ports(0x1b21, 0x1142, 0x8086));
}

static void what_is_switched_off(void **state UNUSED)
{
    begin();
    static const u32 at[] = { 0, 2, 9 };
    for (u32 i = 0; i < 2; i++) {
        u32 *bridge = add(at[i], 3, BRIDGE);
        bridge[3] = 1 << 16;
        bridge[6] = at[i + 1] << 8;
        bridge[1] = 0x00100001; // status: its own bits are not written
    }
    u32 *w = add(0, 4, BRIDGE); // elsewhere
    w[3] = 1 << 16;
    w[6] = 0x000300;
    w = add(9, 0, XHCI);
    struct function *f = &functions[3];
    f->address_bits[0] = 0xffffc000;
    w[4] = 0xfebf0000;
    w[1] = 1 << 20;
    w[13] = 0x40;
    w[16] = 0x00000001; // power management
    w[17] = 0x8103;     // D3, with an event's status, which a one clears
    waited_ms = 0;
    pci_enable(&f->at);
    assert_int_equal(w[17], 0x0100);
    assert_int_equal(waited_ms, 10);
    assert_int_equal(w[4], 0xfebf0000);
    assert_int_equal(w[1] & 0xffff, 0x406);
    assert_int_equal(functions[0].words[1], 0x0007);
    assert_int_equal(functions[1].words[1], 0x0007);
    assert_int_equal(functions[2].words[1], 0);
    pci_enable(&f->at);
    assert_int_equal(waited_ms, 10);
}

static void base_addresses(void **state UNUSED)
{
    begin();
    u32 *w = add(0, 1, XHCI);
    struct pci_memory m;
    functions[0].address_bits[0] = 0xffffc000;
    functions[0].address_bits[1] = ~0u;
    w[4] = 0xfebf0004;
    w[5] = 0x12;
    assert_true(pci_memory(&functions[0].at, 0, &m));
    assert_true(m.base == 0x12febf0000ull && m.size == 0x4000);
    assert_int_equal(w[4], 0xfebf0004); // as before
    assert_int_equal(w[5], 0x12);
    w[4] = 0xfebf0000; // 32 bits
    assert_true(pci_memory(&functions[0].at, 0, &m));
    assert_true(m.base == 0xfebf0000 && m.size == 0x4000);
    w[4] = 0xc001; // ports
    assert_false(pci_memory(&functions[0].at, 0, &m));
    w[4] = 0;
    assert_false(pci_memory(&functions[0].at, 0, &m));
    w[9] = 0xfebf0004; // 64 bits in the last one
    assert_false(pci_memory(&functions[0].at, 5, &m));
}

static u32 *with_messages(void)
{
    begin();
    u32 *w = add(0, 1, XHCI);
    functions[0].address_bits[0] = 0xffffc000;
    w[4] = 0xfebf0000;
    w[1] = 1 << 20; // capabilities
    w[13] = 0x50;
    w[0x50 / 4] = 0x00807005; // MSI, 64 bits
    w[0x70 / 4] = 0x000f9011; // MSI-X, 16 vectors
    w[0x74 / 4] = 0x3000;     // in memory 0
    w[0x90 / 4] = 0x50 << 8;  // a circle
    return w;
}

static int messages(void)
{
    return pci_set_message(&functions[0].at, 0xfee02000, 0x43);
}

static void message_interrupts(void **state UNUSED)
{
    u32 *w = with_messages();
    assert_int_equal(messages(), 0);
    assert_true(mapped == 0xfebf3000 && mapped_size == 16);
    assert_int_equal(table[0], 0xfee02000);
    assert_int_equal(table[1], 0);
    assert_int_equal(table[2], 0x43);
    assert_int_equal(table[3], 0);
    assert_int_equal(w[0x70 / 4], 0x800f9011);
    assert_int_equal(w[0x50 / 4], 0x00807005); // MSI is off

    w = with_messages();
    w[0x74 / 4] = 0x4000; // beyond the memory: MSI instead
    assert_int_equal(messages(), 0);
    assert_int_equal(w[0x50 / 4], 0x00817005);
    assert_int_equal(w[0x54 / 4], 0xfee02000);
    assert_int_equal(w[0x5c / 4], 0x43);
    assert_int_equal(table[0], ~0u);

    w = with_messages();
    w[0x50 / 4] = w[0x70 / 4] = 0x5001; // neither, and a circle
    assert_int_equal(messages(), -ENODEV);
    assert_true(reads < 200);
}

// Each access stays within the configuration space, and all of it ends.
static void noisy_machines(void **state UNUSED)
{
    begin();
    noise = true;
    pci_each(XHCI, see, NULL);
    assert_true(reads < 256 * 32 * 8 * 5);
    for (u32 i = 0; i < 20000; i++) {
        struct pci_function f = { 0 };
        struct pci_memory m;
        pci_set_message(&f, 0xfee00000, 0x43);
        pci_memory(&f, random_below(6), &m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behind_bridges),
        cmocka_unit_test(buses_without_bridges),
        cmocka_unit_test(ports_of_intel),
        cmocka_unit_test(what_is_switched_off),
        cmocka_unit_test(base_addresses),
        cmocka_unit_test(message_interrupts),
        cmocka_unit_test(noisy_machines),
    };
    random_init();
    return cmocka_run_group_tests_name("pci", tests, NULL, NULL);
}
