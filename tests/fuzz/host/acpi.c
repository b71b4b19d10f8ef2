// arch/i386/acpi: firmware tables, and the mapping of what they name
// (arch/i386/mm/device_map.c). An input describes the tables (see build),
// most with valid checksums and addresses; if its first byte is odd, it is the
// raw BIOS memory.
// link: arch/i386/acpi/sleep_type.c
#include "log.h"

#include <string.h>

// The readers are included, so that each input can reset their static
// variables.
#include "arch/i386/acpi/cpus.c"
#include "arch/i386/acpi/fadt.c"
#include "arch/i386/acpi/madt.c"
#include "arch/i386/acpi/register.c"
#include "arch/i386/acpi/spcr.c"
#include "arch/i386/acpi/tables.c"

// The mapping itself, with a model of the page tables.
#define map_device map_pages
void *map_pages(paddr_t base, size_t size);
#include "arch/i386/mm/device_map.c"
#undef map_device

#define BIOS BIOS_START
#define BIOS_BYTES (BIOS_END - BIOS_START)
#define EBDA 0x9fc00u // the EBDA's address in the model
#define HPET_BYTES 0x400u
#define BOOT_CPU 5u // its APIC id
#define INPUT_TABLES 8
#define RSDP_AT 0x10u
#define ROOT_AT 0x100u
#define TABLES_AT 0x400u

struct cpu_features cpu_features;
struct pagetable kernel_pagetable;
struct boot_info boot_info;
struct irq_line isa_lines[ISA_IRQS];

static u8 bios[BIOS_BYTES];
static void *mappings[1024];
static u32 mapping_count;

u32 spin_lock_irq(struct spinlock *l UNUSED)
{
    return 0;
}

void spin_unlock_irq(struct spinlock *l UNUSED, u32 flags UNUSED)
{
}

// No entry has a bit set that the CPU reserves.
int pagetable_map(struct pagetable *pt, u32 va, paddr_t pa, u32 prot UNUSED)
{
    u32 bits = cpu_features.pae ? cpu_features.physical_bits : 32;
    REQUIRE(pt == &kernel_pagetable && !(va % PAGE_SIZE));
    REQUIRE(va >= DEVICE_BASE && va < DEVICE_END);
    REQUIRE(!(pa >> bits) && !(pa % PAGE_SIZE));
    return 0;
}

// Allocates exactly `size` bytes; memory outside the BIOS reads as zeros.
void *map_device(paddr_t base, size_t size)
{
    REQUIRE(size && size <= TABLE_SIZE_MAX);
    device_next = DEVICE_BASE;
    u32 va = (u32)map_pages(base, size);
    REQUIRE(!va || va % PAGE_SIZE == base % PAGE_SIZE);
    REQUIRE(va || (base + size - 1) >> 32 || base >> 32);
    if (!va || mapping_count == ARRAY_SIZE(mappings))
        return NULL;
    u8 *m = calloc(1, size);
    REQUIRE(m);
    paddr_t from = MAX(base, (paddr_t)BIOS);
    paddr_t end = MIN(base + size, (paddr_t)BIOS + BIOS_BYTES);
    if (from < end)
        memcpy(m + (from - base), bios + (from - BIOS), end - from);
    const u16 segment = EBDA >> 4;
    if (base <= BDA_EBDA_SEGMENT && BDA_EBDA_SEGMENT + 2 <= base + size)
        memcpy(m + BDA_EBDA_SEGMENT - base, &segment, sizeof(segment));
    return mappings[mapping_count++] = m;
}

int ioapic_add(paddr_t base UNUSED, u32 gsi_base UNUSED)
{
    return 0;
}

bool pci_present(void)
{
    return true;
}

u32 pci_config_read(u32 function UNUSED, u32 at UNUSED, u32 bytes UNUSED)
{
    return 0;
}

void pci_config_write(u32 function UNUSED, u32 at UNUSED, u32 bytes UNUSED,
                      u32 value UNUSED)
{
}

static void make_right(u32 at, u32 checksum, u32 size)
{
    u8 sum = 0;
    bios[at + checksum] = 0;
    for (u32 i = 0; i < size; i++)
        sum += bios[at + i];
    bios[at + checksum] = (u8)-sum;
}

static void put32(u32 at, u32 value)
{
    memcpy(bios + at, &value, sizeof(value));
}

// Adds a table: its name, length, bytes. Returns its end.
static u32 add_table(struct input *in, u32 at)
{
    static const char names[][5] = { "APIC", "FACP", "HPET",
                                     "SSDT", "DSDT", "SPCR" };
    u8 name = take_byte(in);
    u32 kind = name & 0x40 ? 5 : name % 5;
    u32 length = take_number(in, 2) % 1024;
    memcpy(bios + at, names[kind], 4);
    put32(at + 4, (u32)sizeof(struct acpi_header) + length);
    for (u32 i = 0; i < length; i++)
        bios[at + sizeof(struct acpi_header) + i] = take_byte(in);
    if (kind == 1 && length >= 8) // its DSDT: the next one
        put32(at + 40, BIOS + at + 2048);
    make_right(at, 9, name & 0x80 ? 1 : sizeof(struct acpi_header) + length);
    return at + 2048;
}

// Builds the RSDP, the root table and up to eight tables.
static void build(struct input *in, u8 how)
{
    bool wide = how & 2;
    u32 width = wide ? 8 : 4, count = 0, next = TABLES_AT;
    for (; count < INPUT_TABLES && in->left; count++) {
        put32(ROOT_AT + sizeof(struct acpi_header) + count * width,
              BIOS + next);
        next = add_table(in, next);
    }
    memcpy(bios + ROOT_AT, wide ? "XSDT" : "RSDT", 4);
    put32(ROOT_AT + 4, sizeof(struct acpi_header) + count * width);
    make_right(ROOT_AT, 9, sizeof(struct acpi_header) + count * width);
    memcpy(bios + RSDP_AT, RSDP_SIGNATURE, 8);
    bios[RSDP_AT + 15] = wide ? 2 : 0;
    put32(RSDP_AT + 16, BIOS + ROOT_AT);
    put32(RSDP_AT + 20, sizeof(struct rsdp));
    put32(RSDP_AT + 24, BIOS + ROOT_AT);
    make_right(RSDP_AT, 8, RSDP_SIZE_V1);
    make_right(RSDP_AT, 32, sizeof(struct rsdp));
    // From Multiboot 2, or in the BIOS's memory.
    boot_info.rsdp_copied = how & 8;
    memcpy(boot_info.rsdp_data, bios + RSDP_AT, sizeof(struct rsdp));
}

static void forget(void)
{
    acpi_cpu_count = 0;
    acpi_found_count = 0;
    lapic_address = 0;
    found = false;
    s5 = (struct sleep_type){ 0 };
    boot_info.rsdp_copied = false;
    acpi_info = (struct acpi_info){ 0 };
    known_count = added_later = nmi_exception_count = 0;
    spcr_problem = "there is none";
    memset(&fadt, 0, sizeof(fadt));
    memset(&power_registers, 0, sizeof(power_registers));
    memset(bios, 0, sizeof(bios));
}

static void check(void)
{
    REQUIRE(acpi_cpu_count <= CPU_MAX);
    cpus_complete(BOOT_CPU);
    REQUIRE(acpi_cpu_count >= 1 && acpi_cpu_count <= CPU_MAX);
    REQUIRE(acpi_cpu_apic_ids[0] == BOOT_CPU);
    for (u32 i = 0; i < acpi_cpu_count; i++) {
        for (u32 k = 0; k < i; k++)
            REQUIRE(acpi_cpu_apic_ids[i] != acpi_cpu_apic_ids[k]);
    }
}

// A register that was opened can be accessed: in memory, all of its bytes.
static void check_register(const struct acpi_register *r)
{
    char name[ACPI_REGISTER_NAME];
    if (!r->bytes)
        return;
    acpi_register_name(r, name);
    REQUIRE(r->space <= ACPI_SPACE_PCI && strlen(name));
    if (r->space != ACPI_SPACE_MEMORY)
        return;
    acpi_register_write(r, acpi_register_read(r));
}

static void check_spcr(void)
{
    const struct spcr_port *p = &spcr_port;
    if (spcr_problem)
        return;
    REQUIRE(p->port && p->port <= 0xfff8 && p->irq < 16);
    REQUIRE(!p->rate == !p->divisor);
}

static void check_registers(void)
{
    const struct power_registers *r = &power_registers;
    check_register(&r->pm1a);
    check_register(&r->pm1b);
    check_register(&r->sleep_control);
    check_register(&r->sleep_status);
    check_register(&r->reset);
    REQUIRE(s5.a <= SLEEP_TYPE_MAX && s5.b <= SLEEP_TYPE_MAX);
}

static void read_tables(void)
{
    acpi_init();
    check();
    check_registers();
    check_spcr();
    if (acpi_info.hpet)
        map_device(acpi_info.hpet, HPET_BYTES);
    if (lapic_base())
        map_device(lapic_base(), PAGE_SIZE);
    while (mapping_count)
        free(mappings[--mapping_count]);
}

static void put64(u32 at, u64 value)
{
    memcpy(bios + at, &value, sizeof(value));
}

#define TABLE_AT(i) (TABLES_AT + (i)*0x400u)
enum { MADT_AT = TABLE_AT(0), FADT_AT = TABLE_AT(1), HPET_AT = TABLE_AT(2) };
#define ENTRIES_AT (ROOT_AT + (u32)sizeof(struct acpi_header))

static void put_table(u32 at, const char *signature, u32 length)
{
    memcpy(bios + at, signature, 4);
    put32(at + 4, length);
    make_right(at, 9, length);
}

// An XSDT with one table of each kind; one of their addresses is this one.
static void put_address(u32 at, u64 address)
{
    forget();
    for (u32 i = 0; i < 3; i++)
        put64(ENTRIES_AT + 8 * i, BIOS + TABLE_AT(i));
    put64(RSDP_AT + 24, BIOS + ROOT_AT);
    bios[MADT_AT + sizeof(struct madt)] = MADT_LAPIC_ADDRESS;
    bios[MADT_AT + sizeof(struct madt) + 1] = 12;
    put64(at, address);
    put_table(ROOT_AT, "XSDT", ENTRIES_AT - ROOT_AT + 3 * 8);
    put_table(MADT_AT, "APIC", sizeof(struct madt) + 12);
    put_table(FADT_AT, "FACP", sizeof(struct fadt));
    put_table(HPET_AT, "HPET", 56);
    memcpy(bios + RSDP_AT, RSDP_SIGNATURE, 8);
    bios[RSDP_AT + 15] = 2;
    put32(RSDP_AT + 20, sizeof(struct rsdp));
    make_right(RSDP_AT, 8, RSDP_SIZE_V1);
    make_right(RSDP_AT, 32, sizeof(struct rsdp));
}

#define FADT_ADDRESS(field)                   \
    (FADT_AT + offsetof(struct fadt, field) + \
     offsetof(struct acpi_address, address))

// Addresses beyond the CPU's, and at its border, in each place that has one.
static void far_addresses(void)
{
    static const u32 places[] = {
        RSDP_AT + 24,
        ENTRIES_AT,
        ENTRIES_AT + 8,
        ENTRIES_AT + 16,
        MADT_AT + sizeof(struct madt) + 4,
        HPET_AT + 44,
        FADT_AT + offsetof(struct fadt, x_dsdt),
        FADT_ADDRESS(x_pm_timer),
        FADT_ADDRESS(x_pm1a_control),
        FADT_ADDRESS(reset),
    };
    for (u32 i = 0; i < ARRAY_SIZE(places); i++) {
        for (u32 n = 0; n < 2 * 33; n++) {
            u64 end = n / 2 < 32 ? 1ull << (32 + n / 2) : -(u64)PAGE_SIZE;
            for (u32 bits = 31; bits <= 52; bits += 3) {
                cpu_features.pae = bits > 31;
                cpu_features.physical_bits = MAX(bits, 32u);
                put_address(places[i], end - n % 2 * 8);
                read_tables();
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    static bool far_passed;
    struct input in = { data, size };
    if (!far_passed)
        far_addresses();
    far_passed = true;
    forget();
    u8 how = take_byte(&in);
    cpu_features.pae = how & 4;
    cpu_features.physical_bits = 36 + (how >> 4);
    cpu_features.apic = true;
    if (how & 1)
        memcpy(bios, in.at, MIN(in.left, sizeof(bios)));
    else
        build(&in, how);
    read_tables();
    return 0;
}
