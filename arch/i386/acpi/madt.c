// The multiple APIC description table: CPUs, interrupt controllers, wiring
// (ACPI 6.4, 5.2.12).
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/log.h"
#include "lib/string.h"

enum {
    MADT_LAPIC = 0,
    MADT_IOAPIC = 1,
    MADT_OVERRIDE = 2,
    MADT_LAPIC_NMI = 4,
    MADT_LAPIC_ADDRESS = 5,
    MADT_X2APIC = 9,
    MADT_X2APIC_NMI = 10,
};

#define CPU_ENABLED 1u
#define CPU_ONLINE_CAPABLE 2u
#define BUS_ISA 0
#define ALL_CPUS 0xffu
#define ALL_X2APIC_CPUS 0xffffffffu
#define NO_APIC_ID 0xffu // in an entry of 8 bits
#define NO_X2APIC_ID 0xffffffffu

struct madt {
    struct acpi_header header;
    u32 lapic, flags;
} PACKED;
_Static_assert(sizeof(struct madt) == 44, "ACPI 6.4, table 5.19");

struct entry {
    u8 type, length;
    union {
        struct {
            u8 uid, apic_id;
            u32 flags;
        } PACKED lapic;
        struct {
            u8 id, reserved;
            u32 address, gsi_base;
        } PACKED ioapic;
        struct {
            u8 bus, source;
            u32 gsi;
            u16 flags;
        } PACKED override;
        struct {
            u8 uid;
            u16 flags;
            u8 lint;
        } PACKED nmi;
        struct {
            u16 reserved;
            u64 address;
        } PACKED lapic_address;
        struct {
            u16 reserved;
            u32 apic_id, flags, uid;
        } PACKED x2apic;
        struct {
            u16 flags;
            u32 uid;
            u8 lint;
        } PACKED x2apic_nmi;
    };
} PACKED;
_Static_assert(sizeof(struct entry) == 16, "the longest, of an x2APIC");

// NMI entries identify CPUs by the firmware's processor UIDs.
static struct {
    u32 uid, apic_id;
} known[CPU_MAX];
static u32 known_count;
static u32 added_later;
static bool found;

// A CPU that is not enabled but "online capable" is not there yet: the hardware
// could add it while the system runs.
static void read_cpu(u32 uid, u32 apic_id, u32 flags)
{
    if (!(flags & CPU_ENABLED)) {
        added_later += flags / CPU_ONLINE_CAPABLE % 2;
        return;
    }
    if (known_count < CPU_MAX) {
        known[known_count].uid = uid;
        known[known_count++].apic_id = apic_id;
    }
    cpu_found(apic_id);
    found = true;
}

static void read_entry(const struct entry *e)
{
    switch (e->type) {
    case MADT_LAPIC:
        if (e->lapic.apic_id != NO_APIC_ID)
            read_cpu(e->lapic.uid, e->lapic.apic_id, e->lapic.flags);
        break;
    case MADT_X2APIC:
        if (e->x2apic.apic_id != NO_X2APIC_ID)
            read_cpu(e->x2apic.uid, e->x2apic.apic_id, e->x2apic.flags);
        break;
    case MADT_IOAPIC:
        ioapic_found(e->ioapic.address, e->ioapic.gsi_base);
        break;
    case MADT_OVERRIDE:
        if (e->override.bus == BUS_ISA)
            isa_line_found(e->override.source, e->override.gsi,
                           e->override.flags);
        break;
    case MADT_LAPIC_ADDRESS:
        lapic_found(e->lapic_address.address);
        break;
    }
}

static void nmi_input_of(u32 uid, u32 lint)
{
    for (u32 i = 0; i < known_count; i++) {
        if (known[i].uid == uid)
            nmi_input_found(known[i].apic_id, lint);
    }
}

static void read_nmi(const struct entry *e)
{
    bool wide = e->type == MADT_X2APIC_NMI;
    if (e->type != MADT_LAPIC_NMI && !wide)
        return;
    u32 uid = wide ? e->x2apic_nmi.uid : e->nmi.uid;
    u32 lint = wide ? e->x2apic_nmi.lint : e->nmi.lint;
    if (uid == (wide ? ALL_X2APIC_CPUS : ALL_CPUS))
        nmi_inputs_found(lint);
    else
        nmi_input_of(uid, lint);
}

// Calls fn with a copy of each entry, zero-filled if the entry is short. False:
// an entry claims to extend beyond the table.
static bool for_each_entry(const struct acpi_header *table,
                           void (*fn)(const struct entry *e))
{
    const u8 *p = (const u8 *)table + sizeof(struct madt);
    const u8 *end = (const u8 *)table + table->length;
    while (end - p >= 2 && p[1] >= 2 && p[1] <= end - p) {
        struct entry e = { 0 };
        memcpy(&e, p, MIN((size_t)p[1], sizeof(e)));
        fn(&e);
        p += p[1];
    }
    return p == end;
}

void madt_read(const struct acpi_header *table)
{
    if (found || table->length < sizeof(struct madt))
        return;
    lapic_found(((const struct madt *)table)->lapic);
    bool whole = for_each_entry(table, read_entry);
    for_each_entry(table, read_nmi);
    if (added_later)
        log_printf("acpi: %u CPUs are not there, but could be added later\n",
                   added_later);
    if (!whole)
        log_printf("acpi: the MADT's end is malformed: skipped\n");
}

bool madt_found(void)
{
    return found;
}
