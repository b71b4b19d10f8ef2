// arch/i386/acpi/mptable.c: an input is the number of the default
// configuration, the features, and the configuration table behind its checksum,
// which is corrected.
#include "log.h"

#include <string.h>

// Writes to ports are only counted.
#include "arch/i386/dev/port.h"
static u32 ports_written;
#define out8(port, value) (ports_written += (port) + (value) != 0)

#include "arch/i386/acpi/cpus.c"
#include "arch/i386/acpi/mptable.c"

#define CONFIG_AT 0xf1000u
#define CONFIG_ROOM 0x1000u

struct cpu_features cpu_features;
struct irq_line isa_lines[ISA_IRQS];

static u8 floating[sizeof(struct floating)];
static u8 config[CONFIG_ROOM];
static void *mappings[16];
static u32 mapping_count, lines;

bool checksum_ok(const void *p, u32 size)
{
    u8 sum = 0;
    for (u32 i = 0; i < size; i++)
        sum += ((const u8 *)p)[i];
    return !sum;
}

// Allocates exactly `size` bytes. The floating pointer is where the BIOS
// begins.
void *map_device(paddr_t base, size_t size)
{
    REQUIRE(size && mapping_count < ARRAY_SIZE(mappings));
    u8 *m = calloc(1, size);
    REQUIRE(m);
    mappings[mapping_count++] = m;
    if (base == BIOS_START)
        memcpy(m, floating, MIN(size, sizeof(floating)));
    if (base == CONFIG_AT)
        memcpy(m, config, MIN(size, CONFIG_ROOM));
    return m;
}

int ioapic_add(paddr_t base UNUSED, u32 gsi_base)
{
    REQUIRE(gsi_base == lines);
    lines += 24;
    return 0;
}

u32 ioapic_end(void)
{
    return lines;
}

static void make_right(u8 *bytes, u32 checksum, u32 size)
{
    u8 sum = 0;
    bytes[checksum] = 0;
    for (u32 i = 0; i < size; i++)
        sum += bytes[i];
    bytes[checksum] = (u8)-sum;
}

static void build(struct input *in)
{
    const u32 at = CONFIG_AT;
    memset(floating, 0, sizeof(floating));
    memset(config, 0, sizeof(config));
    memcpy(floating, "_MP_", 4);
    memcpy(floating + 4, &at, 4);
    floating[8] = 1;
    floating[11] = take_byte(in);
    floating[12] = take_byte(in);
    make_right(floating, 10, sizeof(floating));
    memcpy(config, in->at, MIN(in->left, sizeof(config)));
    memcpy(config, "PCMP", 4);
    u16 length;
    memcpy(&length, config + 4, sizeof(length));
    make_right(config, 7, MIN((u32)length, CONFIG_ROOM));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct input in = { data, size };
    acpi_cpu_count = next_gsi = lines = 0;
    memset(is_isa_bus, 0, sizeof(is_isa_bus));
    memset(gsi_base_of, 0, sizeof(gsi_base_of));
    cpu_features.apic = true;
    build(&in);
    mp_tables_read();
    REQUIRE(acpi_cpu_count <= CPU_MAX);
    cpus_complete(1);
    REQUIRE(acpi_cpu_count >= 1 && acpi_cpu_count <= CPU_MAX);
    for (u32 i = 0; i < ISA_IRQS; i++)
        REQUIRE(isa_lines[i].gsi < lines + 0x100);
    while (mapping_count)
        free(mappings[--mapping_count]);
    return 0;
}
