// The firmware's description of the machine: ACPI tables (ACPI 6.4, chapter 5),
// or Intel MP tables where there are none. Read once by arch_init_devices on
// the boot CPU; constant afterwards.
#pragma once

#include "arch/mmu.h"

// The header of every table ("system description table").
struct acpi_header {
    char signature[4];
    u32 length;
    u8 revision, checksum;
    char oem[6], oem_table[8];
    u32 oem_revision, creator, creator_revision;
} PACKED;
_Static_assert(sizeof(struct acpi_header) == 36, "ACPI 6.4, 5.2.6");

// Generic address structure.
struct acpi_address {
    u8 space, width, offset, access;
    u64 address;
} PACKED;
_Static_assert(sizeof(struct acpi_address) == 12, "ACPI 6.4, 5.2.3.2");
#define ACPI_SPACE_MEMORY 0
#define ACPI_SPACE_IO 1
#define ACPI_SPACE_PCI 2

struct acpi_info {
    u16 sci;      // ISA interrupt of the power management (SCI)
    u8 century;   // CMOS index of the century; 0: none
    paddr_t hpet; // 0: none
};
extern struct acpi_info acpi_info;

// The tables that were found, in the order of reading, for reports.
#define ACPI_TABLES_MAX 64u
struct acpi_found {
    paddr_t base;
    const struct acpi_header *table; // NULL: unusable, and `problem` says why
    const char *problem;
};
extern struct acpi_found acpi_found[ACPI_TABLES_MAX];
extern u32 acpi_found_count;

// Finds and reads all tables. Malformed ones are logged and skipped.
void acpi_init(void);
bool checksum_ok(const void *p, u32 size);

// Readers of single tables. The caller has checked the table's length and
// checksum.
void madt_read(const struct acpi_header *table);
void fadt_read(const struct acpi_header *table); // reads the DSDT too
void hpet_table_read(const struct acpi_header *table);
void ssdt_read(const struct acpi_header *table);
void spcr_read(const struct acpi_header *table);
// The table at `base`; NULL, with a log message, if it is unusable.
const struct acpi_header *acpi_table(paddr_t base);

// CPUs and interrupt controllers, from the MADT or the MP tables.
bool madt_found(void); // it listed at least one CPU
void mp_tables_read(void);
void cpu_found(u32 apic_id);  // left out if it cannot be used
void cpus_complete(u32 boot); // moves the boot CPU, of this id, to the front
bool cpus_need_x2apic(void);  // there are ids that xAPIC mode cannot address
// Which LINT input of the local APICs is wired to NMI, 0 or 1: of all CPUs;
// then, of the CPU with this APIC id.
void nmi_inputs_found(u32 lint);
void nmi_input_found(u32 apic_id, u32 lint);
u32 nmi_input(u32 apic_id); // LINT1 if the firmware does not say
void lapic_found(paddr_t base);
paddr_t lapic_base(void); // 0: the tables do not say
void ioapic_found(paddr_t base, u32 gsi_base);
// Records an ISA interrupt's wiring; the flags are the same in ACPI and MP
// tables.
void isa_line_found(u32 irq, u32 gsi, u32 flags);
