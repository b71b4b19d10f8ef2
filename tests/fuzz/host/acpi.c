// arch/i386/acpi: firmware tables. An input describes the tables (see build),
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

#define BIOS BIOS_START
#define BIOS_BYTES (BIOS_END - BIOS_START)
#define EBDA 0x9fc00u // the EBDA's address in the model
#define BOOT_CPU 5u // its APIC id
#define INPUT_TABLES 8
#define RSDP_AT 0x10u
#define ROOT_AT 0x100u
#define TABLES_AT 0x400u

struct cpu_features cpu_features;
struct boot_info boot_info;
struct irq_line isa_lines[ISA_IRQS];

static u8 bios[BIOS_BYTES];
static void *mappings[1024];
static u32 mapping_count;

// Allocates exactly `size` bytes; memory outside the BIOS reads as zeros.
void *map_device(paddr_t base, size_t size)
{
    REQUIRE(size && !(base % PAGE_SIZE) && size <= TABLE_SIZE_MAX + PAGE_SIZE);
    if (mapping_count == ARRAY_SIZE(mappings) || base >= MIB(64))
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

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct input in = { data, size };
    forget();
    u8 how = take_byte(&in);
    cpu_features.pae = how & 4;
    cpu_features.apic = true;
    if (how & 1)
        memcpy(bios, in.at, MIN(in.left, sizeof(bios)));
    else
        build(&in, how);
    acpi_init();
    check();
    check_registers();
    check_spcr();
    while (mapping_count)
        free(mappings[--mapping_count]);
    return 0;
}
